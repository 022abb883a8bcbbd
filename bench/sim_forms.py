"""The loops whose rates the simulator's benchmark measures: copies of one instruction over defined registers."""

from __future__ import annotations

LOOP = """\
	.amdgcn_target "amdgcn-amd-amdhsa--gfx950"
	.text
	.globl loop
	.p2align 8
	.type loop,@function
loop:
	s_load_dwordx2 s[4:5], s[0:1], 0x0
	v_lshlrev_b32_e32 v1, 2, v0
	s_movk_i32 s8, {turns}
{setup}
	s_waitcnt lgkmcnt(0)
.Lloop:
{body}
	s_sub_u32 s8, s8, 1
	s_cmp_lg_u32 s8, 0
	s_cbranch_scc1 .Lloop
	v_mov_b32_e32 v2, 1.0
	global_store_dword v1, v2, s[4:5]
	s_endpgm
.Lend:
	.size loop, .Lend-loop
	.section .rodata,"a",@progbits
	.p2align 6
	.amdhsa_kernel loop
		.amdhsa_kernarg_size 8
		.amdhsa_user_sgpr_count 2
		.amdhsa_user_sgpr_kernarg_segment_ptr 1
		.amdhsa_next_free_vgpr 44
		.amdhsa_next_free_sgpr 16
		.amdhsa_accum_offset 44
		.amdhsa_float_denorm_mode_32 3
	.end_amdhsa_kernel
"""
SDWA = "dst_sel:{} dst_unused:UNUSED_{} src0_sel:{} src1_sel:{}"
BODIES = {
    "v_fma_f32": "v_fma_f32 v{d}, v{a}, v{b}, v{c}",
    "v_add_u32, scalar source": "v_add_u32_e32 v{d}, s8, v{a}",
    "v_mul_f32, constant": "v_mul_f32_e32 v{d}, 2.0, v{a}",
    "v_lshl_add_u32": "v_lshl_add_u32 v{d}, v{a}, 2, v{b}",
    "v_max3_f32": "v_max3_f32 v{d}, v{a}, v{b}, v{c}",
    "v_cmp_gt_f32": "v_cmp_gt_f32_e32 vcc, v{a}, v{b}",
    "v_cndmask_b32": "v_cndmask_b32_e64 v{d}, v{a}, v{b}, s[10:11]",
    "v_perm_b32": "v_perm_b32 v{d}, v{a}, v{b}, s9",
    "v_perm_b32, selector per lane": "v_perm_b32 v{d}, v{a}, v{b}, v40",
    "v_cmp_class_f32": "v_cmp_class_f32_e32 vcc, v{a}, v{b}",
    "v_addc_co_u32": "v_addc_co_u32_e32 v{d}, vcc, v{a}, v{b}, vcc",
    "v_mul_hi_u32": "v_mul_hi_u32 v{d}, v{a}, v{b}",
    "v_mad_u64_u32": "v_mad_u64_u32 v[8:9], s[12:13], v{a}, v{b}, v[24:25]",
    "v_fma_f64": "v_fma_f64 v[8:9], v[16:17], v[24:25], v[26:27]",
    "v_exp_f32": "v_exp_f32_e32 v{d}, v{a}",
    "v_log_f32": "v_log_f32_e32 v{d}, v{a}",
    "v_sin_f32": "v_sin_f32_e32 v{d}, v{a}",
    "v_cos_f32": "v_cos_f32_e32 v{d}, v{a}",
    "v_rcp_f32": "v_rcp_f32_e32 v{d}, v{a}",
    "v_rsq_f32": "v_rsq_f32_e32 v{d}, v{a}",
    "v_sqrt_f32": "v_sqrt_f32_e32 v{d}, v{a}",
    "v_fma_f32 with -x": "v_fma_f32 v{d}, -v{a}, v{b}, v{c}",
    "v_add_f32 with |x|": "v_add_f32_e64 v{d}, |v{a}|, v{b}",
    "v_mul_f32 with clamp": "v_mul_f32_e64 v{d}, v{a}, v{b} clamp",
    "v_add_f32, DPP": "v_add_f32_dpp v{d}, v{a}, v{b} row_shr:1 row_mask:0xf bank_mask:0xf",
    "v_mov_b32, DPP": "v_mov_b32_dpp v{d}, v{a} quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf",
    "v_add_u32, SDWA": "v_add_u32_sdwa v{d}, v{a}, v{b} " + SDWA.format("DWORD", "PAD", "WORD_1", "BYTE_0"),
    "v_or_b32, SDWA result": "v_or_b32_sdwa v{d}, v{a}, v{b} " + SDWA.format("WORD_1", "PRESERVE", "WORD_0", "WORD_1"),
    "v_pk_add_u16": "v_pk_add_u16 v{d}, v{a}, v{b}",
    "v_pk_mul_f32": "v_pk_mul_f32 v[8:9], v[16:17], v[24:25]",
    "v_pk_fma_f32": "v_pk_fma_f32 v[8:9], v[16:17], v[24:25], v[18:19]",
    "v_pk_add_f16": "v_pk_add_f16 v{d}, v{a}, v{b}",
    "v_pk_fma_f16": "v_pk_fma_f16 v{d}, v{a}, v{b}, v{c}",
    "v_add_f16": "v_add_f16_e32 v{d}, v{a}, v{b}",
    "v_fma_f16": "v_fma_f16 v{d}, v{a}, v{b}, v{c}",
    "v_max_f16": "v_max_f16_e32 v{d}, v{a}, v{b}",
    "v_pk_max_f16": "v_pk_max_f16 v{d}, v{a}, v{b}",
    "v_exp_f16": "v_exp_f16_e32 v{d}, v{a}",
    "v_log_f16": "v_log_f16_e32 v{d}, v{a}",
    "v_rcp_f16": "v_rcp_f16_e32 v{d}, v{a}",
    "v_dot2_f32_bf16": "v_dot2_f32_bf16 v{d}, v{a}, v{b}, v{c}",
    "v_fma_mix_f32": "v_fma_mix_f32 v{d}, v{a}, v{b}, v{c} op_sel_hi:[1,1,0]",
    "v_cvt_f32_f16": "v_cvt_f32_f16_e32 v{d}, v{a}",
    "v_cvt_f16_f32": "v_cvt_f16_f32_e32 v{d}, v{a}",
    "v_cvt_pk_bf16_f32": "v_cvt_pk_bf16_f32 v{d}, v{a}, v{b}",
    "v_cvt_pkrtz_f16_f32": "v_cvt_pkrtz_f16_f32 v{d}, v{a}, v{b}",
    "v_cvt_pk_fp8_f32": "v_cvt_pk_fp8_f32 v{d}, v{a}, v{b}",
    "v_cvt_sr_fp8_f32": "v_cvt_sr_fp8_f32 v{d}, v{a}, v{b}",
    "v_cvt_scalef32_pk_fp8_f32": "v_cvt_scalef32_pk_fp8_f32 v{d}, v{a}, v{b}, v{c}",
    "v_cvt_scalef32_pk_f32_fp4": "v_cvt_scalef32_pk_f32_fp4 v[8:9], v{a}, v{b}",
}


def loop_text(body: str, turns: int) -> str:
    """A loop of 32 copies of one instruction over defined registers."""
    lines = [body.format(d=8 + i % 8, a=16 + i % 8, b=24 + i % 8, c=8 + (i + 1) % 8) for i in range(32)]
    setup = [f"v_mov_b32_e32 v{i}, 1.0" for i in range(2, 40)]
    setup += ["s_mov_b32 s9, 0x05040100", "v_mov_b32_e32 v40, s9", "s_mov_b64 s[10:11], 0x5555", "s_mov_b64 vcc, 0"]
    return LOOP.format(turns=turns, setup="\n".join("\t" + s for s in setup), body="\n".join("\t" + s for s in lines))
