"""Verified evidence in, the serving policy out: what each interface serves and falls back to. Pure: values in, a value out."""

from __future__ import annotations

from datetime import datetime

from qgate.judge.promotion import Promotion
from qgate.reports.serve_command import serve_command
from qgate.schemas.policy import Fallback, Interface, Policy, ServerPlan
from qgate.schemas.statement import JudgedVariant, SaidOfTier
from qgate.schemas.verdict import Verdict


def build(promotion: Promotion, now: datetime) -> Policy:
    """The policy for every interface that the evidence speaks of."""
    said = promotion.statement.predicate
    interfaces = {name: _interface(promotion, name, tier) for name, tier in said.tiers.items()}
    used = {name for each in interfaces.values() for name in (each.server, *(back.server for back in each.fallbacks))}
    return Policy(
        run_id=said.run_id,
        evidence_sha256=promotion.evidence_sha256,
        signature=promotion.signature,
        written_at=now,
        interfaces=interfaces,
        servers={name: _server(promotion, name, judged) for name, judged in said.variants.items() if name in used},
    )


def fallbacks(tier: SaidOfTier, served: str | None) -> tuple[str, ...]:
    """What an interface may serve instead: its default first, others that passed, at last the fallback of the recipe."""
    if served is None:
        return ()
    passed = [name for name, each in tier.variants.items() if each.allowed and each.verdict is Verdict.PASS]
    ranked = sorted(passed, key=lambda name: (name == tier.fallback, name != tier.default))
    last = [tier.fallback] if tier.fallback is not None else []
    return tuple(name for name in dict.fromkeys([*ranked, *last]) if name != served)


def _interface(promotion: Promotion, name: str, tier: SaidOfTier) -> Interface:
    served, variants = promotion.serves(name), promotion.statement.predicate.variants
    backs = tuple(
        Fallback(server=back, needs_restart=_differ(variants[served], variants[back]))
        for back in fallbacks(tier, served)
        if served in variants and back in variants
    )
    return Interface(
        description=tier.description,
        server=served,
        default=tier.default,
        verdict=tier.verdict,
        reason=tier.reason,
        fallbacks=backs,
    )


def _differ(one: JudgedVariant, other: JudgedVariant) -> bool:
    """Whether a server of one cannot answer for the other: other bytes, other options or other variables."""
    mine, theirs = serve_command(one), serve_command(other)
    return one.digest != other.digest or (mine.options, mine.environment) != (theirs.options, theirs.environment)


def _server(promotion: Promotion, name: str, judged: JudgedVariant) -> ServerPlan:
    command = serve_command(judged)
    verified = name == promotion.variant
    checkpoint = str(promotion.checkpoint) if verified else judged.source.get("hub", judged.path)
    line = command.line(checkpoint, name)
    if not verified and "hub" in judged.source:
        line += f" --revision {judged.source['commit']}"
    return ServerPlan(
        precision=judged.precision,
        checkpoint=checkpoint,
        checkpoint_digest=judged.digest,
        verified=verified,
        command=line,
        environment=command.environment,
        notes=command.notes,
    )
