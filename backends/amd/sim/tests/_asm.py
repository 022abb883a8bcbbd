"""Complete assembly texts around a list of instructions: descriptor, metadata and kernel arguments."""

from __future__ import annotations

from dataclasses import dataclass, field

DESCRIPTOR = """\
	.section .rodata,"a",@progbits
	.p2align 6, 0x0
	.amdhsa_kernel {name}
		.amdhsa_group_segment_fixed_size {lds}
		.amdhsa_private_segment_fixed_size {scratch}
		.amdhsa_kernarg_size {kernarg}
		.amdhsa_user_sgpr_count 2
		.amdhsa_user_sgpr_kernarg_segment_ptr 1
		.amdhsa_enable_private_segment {private}
		.amdhsa_system_sgpr_workgroup_id_x 1
		.amdhsa_system_sgpr_workgroup_id_y {wg_y}
		.amdhsa_system_sgpr_workgroup_id_z {wg_z}
		.amdhsa_system_vgpr_workitem_id {dims}
		.amdhsa_next_free_vgpr {vgprs}
		.amdhsa_next_free_sgpr {sgprs}
		.amdhsa_accum_offset {accum}
		.amdhsa_reserve_vcc 1
		.amdhsa_float_round_mode_32 0
		.amdhsa_float_round_mode_16_64 0
		.amdhsa_float_denorm_mode_32 3
		.amdhsa_float_denorm_mode_16_64 3
		.amdhsa_dx10_clamp 1
		.amdhsa_ieee_mode 1
		.amdhsa_fp16_overflow 0
		.amdhsa_tg_split 0
	.end_amdhsa_kernel
"""
METADATA = """\
	.amdgpu_metadata
---
amdhsa.kernels:
  - .agpr_count:     {agprs}
    .args:
{args}
    .group_segment_fixed_size: {lds}
    .kernarg_segment_align: 8
    .kernarg_segment_size: {kernarg}
    .max_flat_workgroup_size: 1024
    .name:           {name}
    .private_segment_fixed_size: {scratch}
    .sgpr_count:     {sgprs}
    .sgpr_spill_count: 0
    .symbol:         {name}.kd
    .uniform_work_group_size: 1
    .uses_dynamic_stack: false
    .vgpr_count:     {vgprs}
    .vgpr_spill_count: 0
    .wavefront_size: 64
amdhsa.target:   amdgcn-amd-amdhsa--{target}
amdhsa.version:
  - 1
  - 2
...
	.end_amdgpu_metadata
"""
BUFFER = "      - .address_space:  global\n        .offset:         {offset}\n        .size:           8\n"
BUFFER += "        .value_kind:     global_buffer"
VALUE = "      - .offset:         {offset}\n        .size:           4\n        .value_kind:     by_value"


@dataclass(frozen=True)
class Kernel:
    """An assembly kernel: its body and the resources that its descriptor allocates."""

    body: list[str]
    target: str
    buffers: int = 1
    values: int = 0
    name: str = "k"
    vgprs: int = 256
    agprs: int = 0
    sgprs: int = 96
    lds: int = 0
    scratch: int = 0
    dims: int = 0
    workgroup_ids: int = 1
    replace: dict[str, str] = field(default_factory=dict)

    def text(self) -> str:
        accum = (self.vgprs + 3) // 4 * 4
        fields = {
            "name": self.name,
            "target": self.target,
            "lds": self.lds,
            "scratch": self.scratch,
            "private": int(self.scratch > 0),
            "kernarg": 8 * self.buffers + 4 * self.values,
            "dims": self.dims,
            "wg_y": int(self.workgroup_ids > 1),
            "wg_z": int(self.workgroup_ids > 2),
            "vgprs": accum + self.agprs if self.agprs else self.vgprs,
            "agprs": self.agprs,
            "accum": accum,
            "sgprs": self.sgprs,
            "args": "\n".join(self._arguments()),
        }
        text = self._head() + DESCRIPTOR.format(**fields) + METADATA.format(**fields)
        for old, new in self.replace.items():
            if old not in text:
                raise ValueError(f"{old!r} is not in the kernel text")
            text = text.replace(old, new)
        return text

    def _arguments(self) -> list[str]:
        buffers = [BUFFER.format(offset=8 * i) for i in range(self.buffers)]
        values = [VALUE.format(offset=8 * self.buffers + 4 * i) for i in range(self.values)]
        return buffers + values

    def _head(self) -> str:
        lines = [
            f'\t.amdgcn_target "amdgcn-amd-amdhsa--{self.target}"',
            "\t.amdhsa_code_object_version 6",
            "\t.text",
            f"\t.globl {self.name}",
            "\t.p2align 8",
            f"\t.type {self.name},@function",
            f"{self.name}:",
            *(line if line.endswith(":") else "\t" + line for line in self.body),
            "\ts_endpgm",
            f".Lend_{self.name}:",
            f"\t.size {self.name}, .Lend_{self.name}-{self.name}",
        ]
        return "\n".join(lines) + "\n"
