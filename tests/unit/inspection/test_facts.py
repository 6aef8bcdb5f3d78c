"""Checks that the small checkpoints have no case for: mixtures, other modalities, templates, odd configs. From facts."""

from typing import Any

import pytest

from qgate.inspection import (
    completeness,
    config,
    essentials,
    fields,
    inputs,
    kv_cache,
    membership,
    misfits,
    norms,
    scales,
    template,
    tokenizer,
    vocabulary,
)
from qgate.inspection.facts import Facts, Header, TokenizerFacts, Values
from qgate.inspection.layers import Layer
from qgate.inspection.scheme import Scheme, matches, promise

LINEAR = {"targets": ["Linear"], "weights": {"num_bits": 4, "strategy": "group", "group_size": 128}}
CT = {"quant_method": "compressed-tensors", "format": "pack-quantized", "config_groups": {"g": LINEAR}}


def header(*shape: int, dtype: str = "F16") -> Header:
    return Header(dtype, shape, "model.safetensors", 0)


def facts(headers: dict[str, Header] | None = None, **fields: Any) -> Facts:
    said = fields.pop("quantization", None)
    return Facts(
        config={**fields.pop("config", {}), **({"quantization_config": said} if said else {})},
        headers=headers or {},
        **fields,
    )


def one(value: float, **counts: int) -> Values:
    return Values(1, counts.get("nonfinite", 0), int(value == 0), int(value < 0), 0, value, value)


def codes(found: Any) -> list[str]:
    return [finding.code for finding in found]


def test_experts_that_no_token_reached_are_told_from_rare_ones() -> None:
    usual = {f"model.layers.0.mlp.experts.{n}.up_proj.input_scale": one(0.01 * (n + 1)) for n in range(8)}
    assert codes(scales.check(facts(values=usual), ())) == []
    unset = usual | {"model.layers.0.mlp.experts.8.up_proj.input_scale": one(1e-9)}
    assert codes(scales.check(facts(values=unset), ())) == ["expert-unreached"]
    zero = usual | {"model.layers.0.mlp.experts.8.up_proj.input_scale": one(0.0)}
    assert codes(scales.check(facts(values=zero), ())) == ["expert-unreached"]


def test_global_scales_of_fused_layers_are_one() -> None:
    scheme = Scheme("compressed-tensors", "nvfp4-pack-quantized", 4, is_float=True, group_size=16)
    layers = [Layer(f"model.layers.0.self_attn.{name}_proj", 64, 64, scheme) for name in "qkvo"]
    alike = {f"{layer.module}.weight_global_scale": one(300.0) for layer in layers[:3]}
    alike |= {f"{layers[3].module}.weight_global_scale": one(100.0)}
    assert codes(scales.check(facts(values=alike), layers)) == []
    apart = alike | {f"{layers[1].module}.weight_global_scale": one(310.0)}
    assert codes(scales.check(facts(values=apart), layers)) == ["fused-scales-differ"]


def test_routers_and_other_modalities_may_stay_plain_but_a_quantized_router_is_told() -> None:
    packed = {"model.layers.0.mlp.experts.0.up_proj.weight_packed": header(64, 16, dtype="I32")}
    router = {"model.layers.0.mlp.gate.weight": header(8, 128)}
    assert codes(membership.check(facts(packed | router, quantization=CT))) == []
    tower = {"visual.blocks.0.attn.proj.weight": header(64, 64)}
    assert codes(membership.check(facts(packed | tower, quantization=CT))) == ["kind-not-ignored"]
    bad = {"model.layers.0.mlp.gate.weight_packed": header(8, 16, dtype="I32")}
    assert codes(membership.check(facts(packed | bad, quantization=CT))) == ["router-quantized"]


@pytest.mark.parametrize(
    ("ignored", "found"),
    [([], ["kind-not-ignored"]), (["lm_head"], []), (["language_model.lm_head"], []), (["re:.*lm_head"], [])],
)
def test_a_tied_output_layer_may_be_ignored_under_any_path(ignored: list[str], found: list[str]) -> None:
    packed = {"language_model.model.layers.0.mlp.up_proj.weight_packed": header(64, 16, dtype="I32")}
    tied = {"architectures": ["Gemma3ForConditionalGeneration"], "tie_word_embeddings": True}
    assert codes(membership.check(facts(packed, config=tied, quantization=CT | {"ignore": ignored}))) == found


def test_stacked_experts_of_one_side_are_not_missing() -> None:
    stacked = facts({"model.layers.0.mlp.experts.gate_up_proj.weight": header(8, 64), "model.norm.weight": header(8)})
    apart = facts({"model.layers.0.mlp.experts.0.up_proj.weight": header(64, 8), "model.norm.weight": header(8)})
    other = facts({"model.layers.0.mlp.experts.0.w3.weight": header(64, 8), "model.norm.weight": header(8)})
    for mine, theirs in ((apart, stacked), (stacked, apart), (apart, other)):
        assert codes(completeness.check(mine, theirs)) == []


def test_an_expert_that_is_gone_is_missing_with_and_without_a_baseline() -> None:
    names = [f"model.layers.0.mlp.experts.{number}.up_proj.weight" for number in range(16)]
    whole = facts({name: header(8, 8) for name in names}, config={"num_experts": 16})
    lacking = facts({name: header(8, 8) for name in names[:-1]}, config={"num_experts": 16})
    assert codes(completeness.check(lacking, whole)) == codes(essentials.check(lacking)) == ["tensor-missing"]
    assert codes(completeness.check(whole, whole)) == codes(essentials.check(whole)) == []
    shared = {"model.layers.0.mlp.experts.gate_up_proj": header(16, 8, 8)}
    assert codes(essentials.check(facts(shared, config={"num_experts": 16}))) == []


def test_biases_that_are_gone_from_quantized_layers_are_missing() -> None:
    layer = {f"model.layers.0.self_attn.{name}_proj.weight_scale": header(8, 1) for name in "qkv"}
    rest = {f"model.layers.0.{norm}.weight": header(8) for norm in essentials.NORMS}
    names = [f"model.layers.0.self_attn.{name}_proj.bias" for name in "qkv"]
    said = {"model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"]}
    lacking = layer | rest | {"model.norm.weight": header(8), "model.embed_tokens.weight": header(8, 8)}
    whole = facts(lacking | {name: header(8) for name in names}, config=said)
    assert codes(completeness.check(facts(lacking, config=said), whole)) == ["tensor-missing"]
    (finding,) = essentials.check(facts(lacking, config=said))
    assert (finding.code, finding.places) == ("tensor-missing", tuple(names))
    assert codes(essentials.check(whole)) == []


def test_another_models_names_are_one_finding() -> None:
    theirs = facts({f"transformer.h.{n}.attn.weight": header(8, 8) for n in range(4)})
    mine = facts({f"model.layers.{n}.attn.weight": header(8, 8) for n in range(4)})
    assert codes(completeness.check(mine, theirs)) == ["tensor-names-differ"]


def test_one_layer_that_lacks_what_all_others_have() -> None:
    names = [f"model.layers.{n}.self_attn.{p}_proj.weight" for n in range(4) for p in "qkvo"]
    whole = facts({name: header(8, 8) for name in names}, config={"num_hidden_layers": 4})
    assert codes(completeness.check(whole, None)) == []
    lacking = facts({n: header(8, 8) for n in names if n != names[6]}, config={"num_hidden_layers": 4})
    (finding,) = completeness.check(lacking, None)
    assert (finding.code, finding.places) == ("tensor-missing", ("model.layers.1.self_attn.v_proj",))
    shared = facts({n: header(8, 8) for n in names if n not in {names[5], names[6], names[9], names[10]}})
    assert codes(completeness.check(shared, None)) == [], "two layers that share keys and values are an architecture"


@pytest.mark.parametrize(
    ("module", "target", "does"),
    [
        ("model.layers.0.mlp.up_proj", "re:.*up_proj$", True),
        ("model.layers.0.mlp.up_proj", "re:up_proj$", False),
        ("lm_head", "lm_head", True),
        ("model.lm_head", "lm_head", False),
        ("model.layers.0.mlp.up_proj", "~mlp", True),
        ("x", "re:(", False),
    ],
)
def test_targets_match_as_the_loaders_do(module: str, target: str, does: bool) -> None:
    assert matches(module, target) is does


def test_a_name_goes_before_a_class_and_ignore_before_both() -> None:
    eight = {"targets": ["re:.*down_proj"], "weights": {"num_bits": 8, "strategy": "channel"}}
    said = CT | {"config_groups": {"a": LINEAR, "b": eight}, "ignore": ["re:.*layers.3.*"]}
    promised = promise({"quantization_config": said})
    assert promised is not None
    assert promised.scheme_of("model.layers.0.mlp.down_proj") == Scheme("compressed-tensors", "pack-quantized", 8)
    assert promised.scheme_of("model.layers.0.mlp.up_proj").bits == 4  # type: ignore[union-attr]
    assert promised.scheme_of("model.layers.3.mlp.down_proj") is None


def test_gptq_rules_override_and_exclude() -> None:
    said = {"quant_method": "gptq", "bits": 4, "group_size": 128, "sym": True, "desc_act": True}
    rules = {"+:.*down_proj": {"bits": 8, "group_size": -1}, "-:.*gate$": {}}
    promised = promise({"quantization_config": said | {"dynamic": rules}})
    assert promised is not None
    eight, four = promised.scheme_of("a.down_proj"), promised.scheme_of("a.up_proj")
    assert eight is not None and four is not None
    assert (eight.bits, eight.group_size, eight.order) == (8, None, None)
    assert (four.bits, four.group_size, four.order) == (4, 128, "group")
    assert promised.scheme_of("a.gate") is None


@pytest.mark.parametrize(
    ("mine", "theirs"),
    [
        ({"rope_theta": 1e6}, {"rope_parameters": {"rope_theta": 1e6, "rope_type": "default"}}),
        (
            {"rope_theta": 5e5, "rope_scaling": {"type": "linear", "factor": 2.0}},
            {"rope_parameters": {"rope_theta": 5e5, "rope_type": "linear", "factor": 2.0}},
        ),
        ({}, {"rope_theta": 10000.0}),
    ],
)
def test_one_rope_in_two_spellings_is_one(mine: dict[str, Any], theirs: dict[str, Any]) -> None:
    assert config.rope(mine) == config.rope(theirs)
    assert config.rope({"rope_theta": 2e6}) != config.rope(theirs)


def test_a_field_that_is_missing_may_be_a_default() -> None:
    assert (
        codes(
            config.check(facts(config={"hidden_act": "silu"}), facts(config={"hidden_act": "silu", "mlp_bias": False}))
        )
        == []
    )


def test_near_names_of_fields_that_are_there_are_no_renaming() -> None:
    assert fields.renamed(facts(config={"hidden_size": 8, "hidden_sizes": [8, 8]}), None) == {}
    assert fields.renamed(facts(config={"hidden_sizes": [8, 8]}), None) == {"hidden_sizes": "hidden_size"}


def test_a_quantized_kv_cache_is_asked_for_only_where_the_config_says_so() -> None:
    attention = {"model.layers.0.self_attn.k_proj.weight": header(8, 8)}
    assert codes(kv_cache.check(facts(attention, quantization=CT), promise({"quantization_config": CT}))) == []


def side(text: str, **settings: Any) -> Facts:
    return facts(
        tokenizer=TokenizerFacts(frozenset({"tokenizer.json"}), settings=settings, templates={"default": text})
    )


def test_templates_that_render_alike_are_alike() -> None:
    text = "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% endfor %}"
    spaced = text.replace("{% for m", "{%- for m").replace("m.role", "m['role']")
    assert codes(template.check(side(spaced), side(text))) == []
    (finding,) = template.check(side(text + "{{ eos_token }}", eos_token="</s>"), side(text))
    assert finding.code == "template-differs"
    assert "</s>" in finding.detail


@pytest.mark.parametrize(
    "text",
    [
        "{% for m in messages %}{% generation %}{{ m.content }}{% endgeneration %}{% endfor %}",
        "{{ messages | tojson(indent=2) }}{{ strftime_now('%d %b %Y') }}",
        "{% for m in messages %}{% if loop.index0 == 1 %}{% break %}{% endif %}{{ m.content }}{% endfor %}",
        "{{ bos_token }}{% if tools %}{{ tools[0].function.name }}{% endif %}{{ messages[-1].content }}",
    ],
)
def test_templates_as_they_are_published_render(text: str) -> None:
    assert codes(template.check(side(text), None)) == []


@pytest.mark.parametrize(
    "text",
    [
        "{{ ''.__class__.__mro__ }}{{ messages.__init__.__globals__ }}",
        "{% for x in range(10**9) %}{% endfor %}",
        "{% macro again() %}{{ again() }}{% endmacro %}{{ again() }}",
        "{{",
    ],
)
def test_templates_that_reach_out_of_the_sandbox_or_are_broken_do_not_render(text: str) -> None:
    found = template.render(text, TokenizerFacts(), template.CONVERSATIONS[0])
    assert not found or "class" not in found


def test_merges_in_either_spelling_are_the_same_tokenizer() -> None:
    def made(merges: list[Any], **more: Any) -> Facts:
        model = {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": merges, **more}
        return facts(tokenizer=TokenizerFacts(frozenset({"tokenizer.json"}), {"model": model}))

    assert codes(tokenizer.check(made(["a b"]), made([["a", "b"]], ignore_merges=False))) == []
    assert codes(tokenizer.check(made(["b a"]), made([["a", "b"]]))) == ["tokenizer-differs"]


def test_tokens_beyond_the_embedding_that_the_baseline_has_too_are_its_own() -> None:
    def made(*added: int) -> Facts:
        tokens = [{"id": number, "content": f"<{number}>", "special": True} for number in added]
        seen = TokenizerFacts(frozenset({"tokenizer.json"}), {"model": {"vocab": {"a": 0}}, "added_tokens": tokens})
        return facts({"model.embed_tokens.weight": header(10, 8)}, config={"vocab_size": 10}, tokenizer=seen)

    assert codes(vocabulary.check(made(10), made(10))) == []
    assert codes(vocabulary.check(made(10, 11), made(10))) == ["vocabulary-beyond-embedding"]


@pytest.mark.parametrize(
    ("name", "feeds", "is_moved"),
    [
        ("model.layers.0.mlp.gate.weight", "post_attention_layernorm", False),
        ("model.layers.0.block_sparse_moe.gate.weight", "post_attention_layernorm", False),
        ("model.layers.0.linear_attn.in_proj_ba.weight", "input_layernorm", False),
        ("model.layers.0.self_attn.q_proj.bias", "input_layernorm", False),
        ("model.layers.0.self_attn.v_proj.bias", "input_layernorm", True),
        ("model.layers.0.self_attn.kv_a_layernorm.weight", None, True),
        ("model.layers.0.self_attn.q_norm.weight", None, False),
        ("model.layers.0.self_attn.o_proj.weight", None, False),
    ],
)
def test_norms_and_what_they_feed(name: str, feeds: str | None, is_moved: bool) -> None:
    before = list(norms.norms_before(name.rpartition(".")[0]))
    assert before == [] if feeds is None else f"model.layers.0.{feeds}.weight" in before
    assert norms.is_scaled(name) is is_moved


PLAIN: dict[str, Any] = {"model_type": "qwen3", "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2}


def attention(stack: str, queries: int, keys: int) -> dict[str, Header]:
    """Of two layers."""
    sizes = {"q": (queries, 64), "k": (keys, 64), "v": (keys, 64), "o": (64, queries)}
    names = [(f"{stack}.{layer}.self_attn.{name}_proj.weight", name) for layer in range(2) for name in sizes]
    return {full: header(*sizes[name]) for full, name in names}


@pytest.mark.parametrize(
    ("headers", "said", "found"),
    [
        (attention("model.layers", 512, 256), {}, []),
        (attention("model.layers", 64, 32), {"head_dim": 16}, []),
        (attention("model.layers", 64, 32), {}, ["config-misfit"]),
        (attention("model.layers", 64, 32), {"model_type": "qwen2"}, []),
        (attention("model.layers", 64, 64), {"model_type": "llama"}, ["config-misfit"]),
        (attention("model.layers", 64, 64), {"model_type": "llama", "num_key_value_heads": None}, []),
        (attention("model.layers", 128, 32), {"model_type": "qwen3_next", "head_dim": 16}, []),
        (attention("model.layers", 64, 64), {"auto_map": {"AutoModelForCausalLM": "m.X"}}, []),
        (attention("model.vision_tower.layers", 64, 64), {}, []),
        (attention("model.language_model.layers", 64, 64), {}, ["config-misfit"]),
        (attention("model.layers", 512, 256) | {"model.layers.0.self_attn.q_proj.weight": header(8, 64)}, {}, []),
        ({"model.layers.0.self_attn.qkv_proj.weight": header(99, 64)}, {}, []),
        ({"model.layers.0.self_attn.q_a_proj.weight": header(99, 64)}, {"model_type": "deepseek_v3"}, []),
    ],
)
def test_heads_that_do_not_fit_the_projections(
    headers: dict[str, Header], said: dict[str, Any], found: list[str]
) -> None:
    assert codes(misfits.check(facts(headers, config=PLAIN | said), ())) == found


@pytest.mark.parametrize(
    ("kind", "scale", "found"),
    [
        ("llama", 0.9, []),
        ("llama", 1.2, ["input-scale-foreign"]),
        ("gemma2", 1.9, []),
        ("gemma2", 2.3, ["input-scale-foreign"]),
        ("olmo2", 9.0, []),
    ],
)
def test_no_norm_gives_more_than_its_length(kind: str, scale: float, found: list[str]) -> None:
    """64 columns and weights up to 1: nothing is beyond 8, or 16 where one is added to them."""
    norms = {
        f"model.layers.0.{name}.weight": Values(64, 0, 0, 0, 0, 0.1, 1.0)
        for name in ("post_attention_layernorm", "pre_feedforward_layernorm")
    }
    values = norms | {"model.layers.0.mlp.up_proj.input_scale": one(scale * 8 / 448)}
    layer = Layer("model.layers.0.mlp.up_proj", 128, 64, Scheme("fp8", "fp8", 8, is_float=True, has_static_input=True))
    assert codes(inputs.check(facts(values=values, config={"model_type": kind}), (layer,))) == found
