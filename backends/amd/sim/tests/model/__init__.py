"""An independent Python model of each instruction, written from the CDNA3 and CDNA4 ISA documents."""
