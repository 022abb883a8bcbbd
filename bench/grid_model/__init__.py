"""The grid-level model of AMD chips against published measurements."""
