"""Mutants of the product, written by hand: do the tests see each of them?

    python benchmarks/mutants.py                             # all, two at a time
    python benchmarks/mutants.py --jobs 1 --only odds scrub  # those whose names begin so, one at a time

Each mutant changes one place of a copy of the tree and runs the tests that are meant to see it. One that no test sees
is a wrong number, a lost sample or a leaked text that the tests would let pass.
"""

import argparse
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
LONGEST = 240  # seconds of one run of tests; a mutant that hangs is seen, too


class Mutant(NamedTuple):
    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]


TABLE: dict[tuple[str, str], list[tuple[str, str, str]]] = {  # (file, its tests): name, old text, new text
    # Metrics
    ("core/ragstone/metrics/items.py", "core/test_context_relevancy.py core/test_response_relevancy.py"): [
        ("odds_tie", "share > 0.5", "share >= 0.5"),
        ("odds_share", "yes / (yes + no)", "no / (yes + no)"),
        ("cosine_norm", "(rows * rows).sum(", "abs(rows).sum("),
        ("cosine_nan", "if not np.isfinite(rows).all():", "if np.isnan(rows).all():"),
        ("cosine_zero_vector", "if not largest.all():", "if not largest.any():"),
    ],
    ("core/ragstone/metrics/context_relevancy.py", "core/test_context_relevancy.py core/test_bad_replies.py"): [
        ("context_chunk_share", '"chunk": len(hit) / chunks', '"chunk": len(hit) / len(sentences)'),
        ("context_granularity", 'if options["granularity"] == "sentence":', "if True:"),
        ("context_ids_of_a_batch", "whole(first, first + len(batch) - 1)", "whole(1, first + len(batch) - 1)"),
        ("context_id_twice", "if len(set(ids)) != len(ids):", "if len(set(ids)) > len(ids):"),
        ("context_batches", "if i > first and size + own > room:", "if i > first and size > room:"),
        ("context_joined", 'sentence.choice == passage.choice == "yes"', 'sentence.choice == "yes"'),
        ("context_best_of_chunk", "max(best.get(sentence.chunk, 0.0), answer.p", "max(0.0, answer.p"),
        ("context_against_best", 'one["yes"] * best["no"], one["no"] * best["yes"]', 'one["yes"], one["no"]'),
        ("context_with_previous", "if i and sentences[i - 1].chunk == sentences[i].chunk", "if i"),
        ("context_run", "if run and size + own > room:", "if run and size > room:"),
        ("context_equal_passages", "passages.setdefault(chunk, []).extend(members)", "passages[chunk] = list(members)"),
    ],
    ("core/ragstone/metrics/response_relevancy.py", "core/test_response_relevancy.py core/test_bad_replies.py"): [
        ("response_mean", "mean = sum(cosines) / len(cosines)", "mean = max(cosines)"),
        ("response_majority", "2 * flagged > n", "2 * flagged >= n"),
        ("response_expected", "else mean * (1.0 - probability)", "else mean * probability"),
        ("response_refusal", '(has_answer.choice, refused.choice) == ("no", "refused")', 'refused.choice == "refused"'),
        ("response_ends", '{"response": ends(response)}', '{"response": response}'),
        ("response_blank_question", "if not all(question.strip()", "if not any(question.strip()"),
        ("response_too_many", "questions=listing(one, n, n)", "questions=listing(one, n)"),
    ],
    ("core/ragstone/metrics/response_completeness.py", "core/test_response_completeness.py"): [
        ("completeness_count", 'answer.choice == "yes" for', 'answer.choice != "maybe" for'),
        ("completeness_share", 'share_of(verdicts, "part", "yes")', 'share_of(verdicts, "part", "no")'),
        ("completeness_expected", 'expected_share(answers, "yes")', 'expected_share(answers, "no")'),
        ("completeness_no_part", "listing(TEXT, 1, _MOST_PARTS)", "listing(TEXT, 0, _MOST_PARTS)"),
        (
            "completeness_response_seen",
            '{"question": sample.user_input or ""}',
            '{"question": f"{sample.user_input} {sample.response}"}',
        ),
    ],
    ("core/ragstone/metrics/alignment_coverage.py", "core/test_alignment_coverage.py core/test_bad_replies.py"): [
        ("alignment_min", "return min(alignment, covered / asked)", "return max(alignment, covered / asked)"),
        ("alignment_coverage_of_yes", 'sum(a == "yes" for a, _ in pairs)', "len(pairs)"),
        ("alignment_undefined", "        if asked:", "        if (asked := asked or 1):"),
        ("alignment_expected", 'b.probabilities["yes"], a.probabilities["yes"]', 'b.probabilities["yes"], 1.0'),
    ],
    ("core/ragstone/metrics/summarization_score.py", "core/test_summarization_score.py"): [
        ("summary_weights", "qa * (1.0 - coeff)", "qa * coeff"),
        ("summary_conciseness", "min(summary_characters, source_characters)", "summary_characters"),
        ("summary_no_question", "if not questions:", "if questions is None:"),
    ],
    ("core/ragstone/metrics/items.py", "../core/ragstone/metrics/items.py"): [  # its docstrings' examples
        ("closed_expected_of_all", "if known and len(known) == len(probabilities)", "if known"),
    ],
    ("core/ragstone/metrics/items.py", "core/test_alignment_coverage.py core/test_bad_replies.py"): [
        ("alignment_evidence", "whole(1, len(sentences))", "whole(0, len(sentences))"),
        ("alignment_word", "word = one_of(words)", "word = TEXT"),
        ("items_lowers_score", "answer.choice != good for", "answer.choice == good for"),
    ],
    ("core/ragstone/metrics/fitted.py", "core/test_context_relevancy.py core/test_response_relevancy.py"): [
        ("fitted_reach", "max(z, default=0.0) - self.reach", "max(z, default=0.0) - math.inf"),
        ("fitted_cut", "if p >= 0.5 else", "if p > 0.5 else"),
    ],
    ("core/ragstone/metrics/factual_correctness.py", "core/test_golden.py"): [
        ("golden_order", "range(1, len(value) + 1)", "range(len(value), 0, -1)"),
        ("golden_sides", 'form(response, texts["reference"])', 'form(response, texts["response"])'),
        ("golden_f1", "return 2 * precision * recall / (precision + recall) if", "return (precision + recall) / 2 if"),
    ],
    ("core/ragstone/metrics/criterion.py", "core/test_criterion.py"): [
        ("criterion_even", "1.0 - i / max(1, len(words) - 1)", "1.0 - i / len(words)"),
        ("criterion_sees", "return self.sees", 'return ("response",)'),
        ("criterion_version", '"sees": repr(tuple(self.sees))}', "}"),
        ("criterion_lowers", "< values[best]", "<= values[best]"),
    ],
    ("core/ragstone/metrics/base.py", "core/test_criterion.py"): [
        ("no_judge", "self.needs_llm and self.llm is None", "False"),
    ],
    ("core/ragstone/metrics/items.py", "core/test_faithfulness.py"): [
        ("claims_mapped", "answers = by_map(SUPPORTED, (", "answers = list(("),
        ("claims_once", "tuple({sentence.text: Claim", "tuple({id(sentence): Claim"),
        ("claims_in_words", '"no": "unsupported"', '"no": "supported"'),
    ],
    ("core/ragstone/metrics/base.py", "core/test_summarization_score.py"): [
        ("base_threshold", "value >= self.threshold", "value > self.threshold"),
    ],
    ("core/ragstone/metrics/base.py", "core/test_scoring.py reporting/test_scorings.py"): [
        ("scoring_mark", 'f"{self.version}+expected"', "self.version"),
        ("scoring_declared", "return self.asks_one_by_one and getattr(", "return self.asks_one_by_one or getattr("),
        ("scoring_value", "if self.expects else (value, by_count", "if expected else (value, by_count"),
    ],
    ("core/ragstone/metrics/base.py", "labels/test_applied.py"): [
        ("scoring_calibrated", 'settings.get("scoring") == "expected"', 'settings.get("scoring") != "count"'),
    ],
    ("core/ragstone/metrics/base.py", "core/test_bad_input.py core/test_own_metric.py core/test_public.py"): [
        ("base_invisible", 'not in "ZC"', 'not in "Z"'),
        ("base_empty_contexts", " or field not in sample.model_fields_set", ""),
        ("base_limit", "(size := tokens(system, user)) > self._limit", "(size := tokens(system, user)) < 0"),
    ],
    ("core/ragstone/metrics/base.py", "core/test_beginnings.py core/test_instructions.py"): [
        ("base_text_first", "{fence(data)}\\n{instructions} {reminder}", "{instructions}\\n{fence(data)}\\n{reminder}"),
    ],
    # Replies and prompts
    ("core/ragstone/judging/reply.py", "core/test_parsing.py"): [
        ("reply_duplicate_key", "if len(value) != len(pairs):", "if len(value) > len(pairs):"),
        ("reply_keys", "if value.keys() != fields.keys():", "if not value.keys() <= fields.keys():"),
        ("reply_strict", "if type(value) is not _TYPES[kind]:", "if not isinstance(value, _TYPES[kind]):"),
        ("reply_extra_id", '("unknown", has - wants)', '("unknown", has - has)'),
        ("reply_missing_id", '("missing", wants - has)', '("missing", wants - wants)'),
        ("reply_word", 'value not in schema["enum"]', "not value"),
        ("reply_count", "exact and len(value) > least", "False"),
        ("reply_nan", "parse_constant=_no_constant, ", ""),
        ("reply_infinite", "if not math.isfinite(value):", "if math.isnan(value):"),
    ],
    ("core/ragstone/judging/flow.py", "core/test_bad_replies.py"): [
        ("ask_says_what_was_wrong", "replace(request, user=again)", "replace(request)"),
    ],
    ("core/ragstone/judging/adapting.py", "judging"): [
        ("choice_ambiguous", "_AMBIGUOUS = 0.05", "_AMBIGUOUS = 0.5"),
        ("choice_begun", "if len(begun) == 1:", "if begun:"),
        ("choice_share", "value / total", "value"),
    ],
    ("core/ragstone/judging/prompt.py", "core/test_bad_input.py core/test_injection.py core/test_instructions.py"): [
        ("fence_nonce", "if not any(nonce in text.lower()", "if not any(nonce == text.lower()"),
        ("fence_sendable", "{name: sendable(text) for", "{name: text for"),
        ("prompt_one_line", '_LINE_BREAKS.sub(" ", text).strip()', "text.strip()"),
        ("prompt_one_pass", "values.get(place[1], place[0])", "values.get(place[1], '')"),
    ],
    ("core/ragstone/judging/flow.py", "core/test_sharing.py core/test_costs.py"): [
        ("drivers_stop_paying", "while not failures and left:", "while left:"),
        ("drivers_order", "replies[place] = call(request)", "replies[len(replies)] = call(request)"),
    ],
    ("core/ragstone/judging/injection.py", "injection/test_suspicion.py"): [
        ("suspicion_most", "if len(flags) >= MOST:", "if len(flags) > 2 * MOST:"),
        ("suspicion_shots", "_SHOTS = 3", "_SHOTS = 4"),
        ("suspicion_chunk", 'chunk = i if field in ("retrieved_contexts", "history") else None', "chunk = None"),
    ],
    # Sentences
    ("core/ragstone/text/sentences.py", "text"): [
        ("sentences_lead", "starts[0] = 0", "starts.sort()"),
        ("sentences_margin", "_MARGIN = 1200", "_MARGIN = 0"),
        ("sentences_undecided", "undecided <= start <= sure", "begin <= start <= sure"),
    ],
    ("core/ragstone/text/_pysbd.py", "text"): [
        ("align_position", "position = ink.start() + len(sentence)", "position = ink.start()"),
        ("easy_pairs", "if 2 * pairs != count:", "if 2 * pairs > count:"),
    ],
    ("core/ragstone/text/sentences.py", "languages/test_scripts.py"): [
        ("scripts_japanese", '["ja"] * 10 > words["zh"]', '["ja"] > words["zh"]'),
    ],
    # Batches: journal, pace, sources, report, comparison, provider
    ("core/ragstone/identity.py", "store/test_keys.py"): [
        ("key_of_a_draw", "of_metric, draw]", "of_metric]"),
        ("key_of_a_response", "contexts, sample.response, *later", "contexts, *later"),
        ("key_of_a_reference", '[{"reference": sample.reference}]', "[]"),
        ("key_of_a_reply", "request.choices, judge, draw]", "request.choices, judge]"),
    ],
    ("core/ragstone/store/record.py", "store/test_journal.py"): [
        ("journal_final", '"judge_error", "timeout", ', '"judge_error", '),
    ],
    ("core/ragstone/store/journal.py", "store/test_journal.py store/test_claims.py"): [
        ("journal_fork", "self._lease.pid != os.getpid()", "self._lease.pid < 0"),
        (
            "journal_close",
            "if not self._closed:\n                self.flush()",
            "if self._closed:\n                self.flush()",
        ),
        ("journal_claim", "or lease is None or not lease.lives(row[0])", "or row is not None"),
    ],
    ("core/ragstone/store/connection.py", "store/test_journal.py store/test_sqlite.py store/test_contract.py"): [
        ("journal_replaced", "is not None and self._file != _identity(self.path):", "is not None and not self.path:"),
        ("journal_version", "if mark == kind.mark and version == kind.version:", "if mark == kind.mark:"),
    ],
    ("core/ragstone/limits/limiter.py", "batch/test_limiter.py batch/test_gate.py"): [
        ("limiter_limit", "self.in_flight >= self.limit", "self.in_flight > self.limit"),
        ("limiter_backs_off", "min(self.limit, self.in_flight) // 2)", "min(self.limit, self.in_flight))"),
        ("limiter_burst", "max(1.0, per_minute / 60)", "max(1.0, per_minute / 6)"),
    ],
    ("core/ragstone/sample.py", "batch/test_rows.py"): [
        ("rows_names", '"contexts", "retrieval_context"', '"contexts"'),
    ],
    ("core/ragstone/sources.py", "batch/test_rows.py"): [
        ("rows_line", "for line in file), 1)", "for line in file), 0)"),
        ("rows_mapped", "and names[0] not in row:", "and names[0] is None:"),
        ("rows_empty_text", "is not None:\n                    values", ":\n                    values"),
    ],
    ("core/ragstone/sources.py", "batch/test_sources.py"): [
        ("files_cells", "if len(cells) != width:", "if len(cells) > width:"),
        ("files_of_something_else", "            if len(bad) == _LOOKED_AT:\n", "            if not bad:\n"),
        ("files_by_content", "_READERS[kind if kind in _READERS else", "_READERS[kind if kind else"),
        ("files_open_quote", "delimiter=delimiter, strict=True", "delimiter=delimiter, strict=False"),
    ],
    ("core/ragstone/limits/budget.py", "batch/test_spending.py"): [
        ("price_per_million", "/ 1e6", "/ 1e3"),
        ("price_of_its_provider", 'f"{provider}/{model}"', 'f"openai/{model}"'),
        ("budget_expected", "need |= self._expected()", "need |= Counter()"),
        ("budget_given_back", "difference.subtract(self._reserved)", "difference.subtract(Counter())"),
    ],
    ("core/ragstone/reporting/statistics.py", "reporting/test_statistics.py"): [
        ("statistics_interval", "(0.025, 0.975)", "(0.05, 0.95)"),
        ("statistics_permutation", "return (1 + hits) / (1 + _PERMUTATIONS)", "return hits / _PERMUTATIONS"),
        ("statistics_sign_test", "return min(1.0, 2 * sum(", "return min(1.0, sum("),
        ("statistics_noise", "self._freedom += len(values) - 1", "self._freedom += len(values)"),
        ("buckets_upper_end", "if end in self._bins:", "if first - 1 in self._bins:"),
    ],
    ("core/ragstone/reporting/aggregates.py", "reporting/test_report.py"): [
        ("report_worst", "(-self.info.sign * worst.value, at", "(self.info.sign * worst.value, at"),
        ("report_passed", "for score in scores if score.passed is not None]", "for score in scores]"),
        ("report_mean_of_rows", "_values.add(worst.value, weight)", "_values.add(worst.value, weight * len(scores))"),
        ("report_weight", "return 1 / record.rate if", "return record.rate if"),
    ],
    ("core/ragstone/reporting/aggregates.py", "reporting/test_page.py"): [
        ("report_unreported", "[name] += value is None", "[name] += 0"),
    ],
    ("core/ragstone/reporting/comparison.py", "reporting/test_compare.py"): [
        ("compare_direction", "(up, down) if higher else (down, up)", "(up, down)"),
        ("compare_better", "(self.difference > 0) == self.higher_is_better", "self.difference > 0"),
        ("compare_noise", "abs(self.difference) <= reach", "abs(self.difference) <= 0"),
        ("compare_unpaired", "self.times[sample_id] += 1", "self.times[sample_id] += 0"),
    ],
    ("core/ragstone/store/results.py", "reporting/test_read.py"): [
        ("read_since", "submitted_at >= :since", "scored_at >= :since"),
        ("read_damaged", "damaged += 1", "damaged += 0"),
    ],
    ("core/ragstone/batch/provider.py", "batch/test_provider_batch.py"): [
        ("provider_payer", "asked.payer == payer and key not", "key not"),
        ("provider_asked_twice", "if key in wanted:", "if key == '':"),
        ("provider_not_run", 'error.get("code") in _NOT_RUN', 'error.get("code") == ""'),
    ],
    # Monitor
    ("core/ragstone/limits/budget.py", "monitor/test_budget.py"): [
        ("budget_bound", "+ amount > limit", "+ amount >= limit"),
        ("budget_day", '"day": 86_400}', '"day": 3_600}'),
        (
            "budget_all_windows",
            "for name, starts_at, amount, _ in entries:",
            "for name, starts_at, amount, _ in entries[:1]:",
        ),
    ],
    ("core/ragstone/store/outbox.py", "monitor/test_outbox.py"): [
        ("outbox_alive", "not in (None, me) and not self.owner.lives(owner)", "not in (None, me)"),
        ("outbox_unreadable", '"WHERE owner IS NULL AND attempts >= 0 AND', '"WHERE owner IS NULL AND'),
        ("outbox_wait", "left.attempts, time.time() + wait, left", "left.attempts, time.time(), left"),
        (
            "outbox_claimed",
            '"UPDATE samples SET owner = ? WHERE seq = ?", (me',
            '"UPDATE samples SET owner = ? WHERE seq = ?", (None',
        ),
    ],
    ("core/ragstone/store/private_files.py", "store/test_lease.py store/test_claims.py"): [
        ("lease_lock", "if not lock_file(file):", "if lock_file(file) is None:"),
        ("lease_time", "< self._seconds", "> 0"),
        ("lease_name", "if not _NAME.fullmatch(name):", "if not name:"),
    ],
    ("core/ragstone/monitor/counters.py", "monitor/test_accounting.py monitor/test_submit.py monitor/test_kill.py"): [
        ("accounting_pending", "return self._accepted - sum(self._by_status.values())", "return 0"),
        ("accounting_remaining", "self.pending() + self._cut + (spooled", "self.pending() + (spooled"),
        ("accounting_cut", 'self.settle("dropped", "closed", evaluations)', 'self.settle("dropped", "closed", 1)'),
    ],
    ("core/ragstone/pace.py", "monitor/test_pace.py"): [
        ("pace_alone", "self._computing.acquire()", "self._computing.acquire(blocking=False)"),
        ("pace_over", "if self.over:\n            raise", "if not self:\n            raise"),
        ("pace_given_up", "self.over = True\n        self.__exit__()", "self.over = True"),
        ("pace_overlap", "if match.start() >= end:", "if match.start() > end:"),
        ("pace_piece", "begin = max(begin, end)", "begin = end"),
    ],
    ("core/ragstone/monitor/worker.py", "monitor/test_pace.py"): [
        ("pace_timeout", "evaluation.pace.give_up()\n            self._alive", "self._alive"),
        ("pace_close", "for evaluation in ended:\n            evaluation.pace.give_up()", "pass"),
    ],
    ("core/ragstone/monitor/outbox_pipeline.py", "monitor/test_taking_only.py"): [
        (
            "taking_room",
            "if not self._settings.workers:\n            return 0, 0",
            "if False:\n            return 0, 0",
        ),
        ("taking_waits", "return  # what cannot be written waits until it can", "pass"),
        ("taking_bound", "_BATCH - len(self._unwritten)", "_BATCH"),
    ],
    ("core/ragstone/monitor/pipeline.py", "monitor/test_taking_only.py"): [
        ("taking_loop", "if _runs_a_loop():", "if not _runs_a_loop:"),
        ("taking_sinks", "if judges else ()", "if True else ()"),
    ],
    ("core/ragstone/monitor/pipeline.py", "monitor/test_submit.py"): [
        ("recent_older", "if key in self._older or key in self._newer:", "if key in self._newer:"),
    ],
    ("core/ragstone/monitor/sampling.py", "monitor/test_sampling.py"): [
        ("sampling_rate", "drawn[salt] < choice.rate", "drawn[salt] > choice.rate"),
        ("sampling_weight", "choice._replace(rate=1.0, by=name, ", "choice._replace(by=name, "),
        ("sampling_correlated", "self._seed if self._correlated else ", "self._seed if not self._correlated else "),
        ("sampling_feedback", "if feedback is False or feedback < 0", "if feedback < 0"),
        ("sampling_uniform", '"big") / 2**64', '"big") / 2**63'),
    ],
    ("core/ragstone/monitor/redaction.py", "monitor/test_redaction.py"): [
        ("scrub_key", "else without_keys(outcome.detail)", "else outcome.detail"),
        ("scrub_quoted", "_QUOTED, _SHORTEST = 24, 8", "_QUOTED, _SHORTEST = 24, 30"),
        ("scrub_reply", 'hide = outcome.reason == "judge_unparseable"', 'hide = outcome.reason == "timeout"'),
    ],
    ("core/ragstone/store/record.py", "monitor/test_redaction.py"): [
        ("scrub_reason", 'update={"reason": "", "verdicts"', 'update={"verdicts"'),
        ("scrub_evidence", 'each.model_copy(update={"text": ""})', "each"),
    ],
    ("core/ragstone/monitor/delivery.py", "monitor/test_delivery.py"): [
        ("delivery_strikes", "_STRIKES = 3", "_STRIKES = 1"),
        ("delivery_lost", "item.row is None for item", "item.row is not None for item"),
        ("delivery_order", "extendleft(reversed(batch))", "extend(reversed(batch))"),
        ("delivery_full", "self._items.popleft()\n                    self._items.append(item)", "pass"),
    ],
    # Sinks
    ("core/ragstone/store/record.py", "store/test_database.py store/test_contract.py"): [
        ("sink_rate", "getattr(record, name) for name in _OPTIONAL if", "0.5 for name in _OPTIONAL if"),
        ("sink_unknown_tokens", "values.get(name) in (None, ())", "values.get(name) == ()"),
    ],
    ("core/ragstone/store/database.py", "store/test_database.py store/test_contract.py"): [
        ("database_upsert", "DO UPDATE SET {changes}", "DO NOTHING"),
    ],
    ("core/ragstone/monitor/sampling.py", "monitor/test_alerts.py"): [
        ("alerts_rules", "drawn=self._draw(choice, sample_id, drawn)", "drawn=True"),
    ],
    ("core/ragstone/monitor/betting.py", "monitor/test_alerts.py"): [
        ("alerts_fresh_stakes", "if samples % _BETWEEN == 0 else 0.0", "if samples == 0 else 0.0"),
        ("alerts_unplaced", "together + 1 /", "together + 0 /"),
        ("alerts_largest_bet", "largest = 1 / (1 - mean)", "largest = 2 / (1 - mean)"),
    ],
    ("core/ragstone/monitor/alerts.py", "monitor/test_alerts.py"): [
        ("alerts_slices_share", "ALPHA * share(tally.place) if by else ALPHA", "ALPHA"),
        ("alerts_uncounted", "if self._strikes < _STRIKES:", "if self._strikes > _STRIKES:"),
        ("alerts_told_again", "raised = not tally.told and", "raised ="),
    ],
    ("core/ragstone/store/database.py", "store/test_tallies.py"): [
        ("alerts_counted_once", "set(map(_key, rows)) - known", "set(map(_key, rows))"),
        ("alerts_after_lack", "WHERE status = 'scored' AND", "WHERE"),
    ],
    ("core/ragstone/store/alerts.py", "monitor/test_alerts.py store/test_tallies.py"): [
        ("alerts_lock", "self._run(_SAVE, _HEAD)", "pass"),
        ("alerts_place", "Tally(place=n + 1)", "Tally(place=1)"),
    ],
    ("core/ragstone/monitor/sampling.py", "monitor/test_feedback.py"): [
        ("feedback_kept", "] or self._kept", "]"),
        ("feedback_thumbs", "else feedback\n    if not", "else word\n    if not"),
    ],
    ("core/ragstone/store/outbox.py", "monitor/test_feedback.py monitor/test_forget.py store/test_forget.py"): [
        ("outbox_kept_claimed", "attempts >= 0 AND kept IS NULL AND (not_before", "attempts >= 0 AND (not_before"),
        ("outbox_feedback_kept", "self._connection.execute(choose, (sample_id,)).rowcount == 1", "False"),
        ("outbox_put_off_forgotten", "if self._is_forgotten(left.sample_id, left.submitted_at):", "if False:"),
        ("outbox_keep_forgotten", "if self._is_forgotten(record.sample_id, record.submitted_at):", "if False:"),
    ],
    ("core/ragstone/store/pending.py", "store/test_forget.py"): [
        ("forgotten_late", "if not noted or row[at] > noted", "if True or row[at] > noted"),
        (
            "forgotten_for_ever",
            'row[at] > noted.get(_digest(row["sample_id"]), -1.0)',
            '_digest(row["sample_id"]) not in noted',
        ),
        ("forgotten_user", 'sample.get("metadata", {}).get("user_id")', "None"),
    ],
    ("core/ragstone/store/connection.py", "store/test_forget.py"): [
        ("vacuum_rewrite", 'self._connection().execute("VACUUM")', "pass"),
        ("vacuum_log", "wal_checkpoint(TRUNCATE)", "wal_checkpoint(PASSIVE)"),
    ],
    ("core/ragstone/reporting/aggregates.py", "reporting/test_by_feedback.py"): [
        ("report_by_feedback", "if records[0].chosen_by == FEEDBACK:", "if not records:"),
    ],
    ("core/ragstone/store/database.py", "store/test_database.py"): [
        ("ledger_bound", "amount > entry.limit", "amount >= entry.limit"),
        ("ledger_sum", "spending.amount + excluded.amount", "excluded.amount"),
        ("ledger_order", "sorted(entries, key=lambda entry: (entry.name, entry.starts_at))", "entries"),
    ],
    ("core/ragstone/store/jsonl.py", "store/test_jsonl.py"): [
        ("jsonl_half_line", "if size and _last_byte(", "if not size and _last_byte("),
        ("jsonl_rollback", "os.ftruncate(file, size)", "os.fsync(file)"),
    ],
    ("core/ragstone/store/otel.py", "store/test_otel.py"): [
        ("otel_label", "if outcome.passed else FAILED", "if not outcome.passed else FAILED"),
        ("otel_context", "set_span_in_context(NonRecordingSpan(span), Context())", "Context()"),
    ],
    ("core/ragstone/plain.py", "store/test_plain.py store/test_contract.py"): [
        ("clean_key_length", "if len(cleaned) <= KEY_LENGTH:", "if len(cleaned) <= KEY_LENGTH * 2:"),
        ("clean_nan", "if math.isfinite(number):", "if not math.isnan(number):"),
    ],
    # Command line
    ("core/ragstone/cli/score.py", "cli/test_score.py"): [
        ("cli_threshold", "mean is None or mean < limit", "mean is None or mean <= limit"),
        ("cli_threshold_unscored", "mean is None or mean < limit", "mean is not None and mean < limit"),
        ("cli_bad_lines", "if result.bad_rows:", "if len(result.bad_rows) > 1_000:"),
        ("cli_nothing_scored", "any(summary.scored for", "any(summary.total for"),
    ],
    ("core/ragstone/cli/main.py", "cli/test_process.py cli/test_main.py"): [
        ("cli_broken_pipe", "_SIGPIPE_STATUS = 141", "_SIGPIPE_STATUS = 0"),
        ("cli_interrupt", "_SIGINT_STATUS = 130", "_SIGINT_STATUS = 1"),
    ],
    ("core/ragstone/cli/options.py", "cli/test_options.py cli/test_score.py cli/test_files.py"): [
        ("cli_overwrites_input", "if its_identity is not None and its_identity == identity:", "if identity == '':"),
        ("cli_infinite_option", "if not math.isfinite(number):", "if math.isnan(number):"),
    ],
    # Calibration, many machines
    ("core/ragstone/labels/fit.py", "labels/test_fitting.py"): [
        ("calibration_f1", "2.0 * (chosen @", "(chosen @"),
        ("calibration_f1_of_none", "np.asarray(taken == 0, np.float64)", "np.zeros(taken.shape)"),
    ],
    ("core/ragstone/labels/estimates.py", "labels/test_estimates.py"): [
        ("estimates_prior", "rng.beta(k + 0.5, n - k + 0.5, _DRAWS)", "rng.beta(k + 0.5, n - k + 1.5, _DRAWS)"),
        ("estimates_slope", "slope = 0.0 if alone else min(1.0, yf / ff)", "slope = 0.0"),
        ("estimates_chance", "yf * yf * data.n < 4.0 * yy * ff", "yf * yf * data.n < 0.0"),
        ("estimates_extra", "crowded = _crowded(share, n, 1.5 if open_ends else 10.0)", "crowded = 0.0"),
        ("estimates_of_all", "variance = of_residuals + slope**2 * of_all", "variance = of_residuals"),
        ("estimates_group", "    units = np.array([places[group]", "    np.array([places[group]"),
        ("estimates_weights", "w_rest.mean() if len(rest) else 1.0", "1.0"),
        ("estimates_strata", "w * (size / np.where(inside > 0.0, inside, 1.0))[of[:n]]", "w"),
        ("estimates_within", "residual = y - means(y) - slope", "residual = y - y_mean - slope"),
        ("estimates_uncovered", "data.covered * high + 1.0 - data.covered", "data.covered * high"),
        ("estimates_least", "if n < LEAST_LABELS:", "if n < 2:"),
    ],
    ("core/ragstone/labels/plan.py", "labels/test_plan.py"): [
        ("plan_rest", "max(1, samples - n) / samples", "1.0"),
        (
            "plan_known",
            "known = 0.0 if self.samples is None else self.rho**2 / max(self.samples, labels)",
            "known = 0.0",
        ),
        ("plan_power", "reach + float(normal.ppf(_POWER))", "reach"),
    ],
    ("core/ragstone/labels/label_rows.py", "labels/test_labels.py"): [
        ("calibration_label", "and 0 <= value <= 1:", "and value <= 1:"),
        ("calibration_places", "(context, sentence) in relevant", "(0, sentence) in relevant"),
    ],
    ("core/ragstone/labels/calibration.py", "../core/ragstone/labels/calibration.py"): [
        ("calibration_votes", "(len(answers) + 1.0)", "len(answers)"),
    ],
    ("core/ragstone/distributed/chunk.py", "distributed/test_outcomes.py"): [
        ("distributed_half_line", 'if line.endswith(b"\\n"):', 'if line.startswith(b"{"):'),
        ("distributed_final", "if not is_final(outcome):", "if outcome is None:"),
    ],
    ("core/ragstone/distributed/on_dask.py", "distributed/test_chunk.py distributed/test_on_dask.py"): [
        ("distributed_row", "row=item.line - 1", "row=item.line"),
    ],
    # LangChain
    ("integrations/ragstone_langchain/messages.py", "with_langchain/test_evaluator.py with_langchain/test_fields.py"): [
        ("langchain_tool_call", "m.is_answer if m is turn[-1] else not m.calls_tools", "m.is_answer"),
        ("langchain_last_question", "in reversed(value) if", "in value if"),
        ("langchain_this_turn", """        if message.role == "human":\n            break\n""", ""),
        ("langchain_failed_tool", 'message.role != "tool" or message.failed', 'message.role != "tool"'),
    ],
    ("integrations/ragstone_langchain/evaluator.py", "with_langchain/test_evaluator.py"): [
        ("langchain_unscored", '"score": None if score is None', '"score": 0.0 if score is None'),
    ],
    ("integrations/ragstone_langchain/recorder.py", "with_langchain/test_monitor_handler.py"): [
        (
            "langchain_never_raises",
            "except Exception as error:\n        monitor.failed",
            "except OSError as error:\n        monitor.failed",
        ),
        ("langchain_judge", "if JUDGE_TAG in tags:", "if tags == JUDGE_TAG:"),
        ("langchain_error", "if error is None and question is None", "if question is None"),
        ("langchain_error_text", "describe(error, most=_ERROR_LENGTH)", "describe(error)"),
        ("langchain_tool_in_retriever", "sample is None or _in_retriever(run):", "sample is None:"),
    ],
    ("integrations/ragstone_langchain/shared_model.py", "with_langchain/test_tracing.py"): [
        ("langchain_stream", 'tags=[JUDGE_TAG, "nostream"]', "tags=[JUDGE_TAG]"),
        ("langchain_trace", "    if not trace:", "    if trace:"),
        ("langchain_hooks", "context.run(variable.set, _SILENT)", "context.run(variable.get)"),
        ("langchain_callbacks", 'if name == "callbacks" and value:', 'if name == "callbacks" and not value:'),
    ],
    ("core/ragstone/monitor/run_tree.py", "with_langchain/test_monitor_handler.py"): [
        ("run_tree_most_open", "len(self._roots) < MOST_OPEN and", "True and"),
    ],
    ("integrations/ragstone_langchain/handler.py", "with_langchain/test_monitor_handler.py"): [
        ("langchain_copied_handler", "return self  # configs", "return MonitorHandler(self.monitor)  # configs"),
    ],
    # LlamaIndex
    (
        "integrations/ragstone_llama_index/spans.py",
        "with_llama_index/test_monitor_runs.py with_llama_index/test_monitor_handlers.py",
    ): [
        ("llama_index_where", "or self.where(instance, name) else", "or not self.where(instance, name) else"),
        ("llama_index_judge", "if JUDGE_TAG in tags:", "if JUDGE_TAG == tags:"),
    ],
    ("integrations/ragstone_llama_index/recorder.py", "with_llama_index/test_monitor_runs.py"): [
        ("llama_index_nodes_twice", 'self.runs.discard(outer, "retrieved")', 'self.runs.discard(run, "retrieved")'),
    ],
    (
        "integrations/ragstone_llama_index/recorder.py",
        "with_llama_index/test_monitor_handlers.py with_llama_index/test_monitor_runs.py",
    ): [
        ("llama_index_tags", 'and key[:11] != "llamaindex."', ""),
        ("llama_index_abandoned", "if isinstance(error, GeneratorExit):", "if isinstance(error, OSError):"),
        ("llama_index_given_up", "if error is None or isinstance(error, _CALLED_OFF):", "if error is None:"),
    ],
    ("integrations/ragstone_llama_index/streaming.py", "with_llama_index/test_streams.py"): [
        (
            "llama_index_stream_error",
            "if self.error is not None:\n            raise self.error\n\n    def read",
            "def read",
        ),
        (
            "llama_index_stream_text",
            "if error is None and self.response.response_txt is None:",
            "if error is None and False:",
        ),
    ],
    ("integrations/ragstone_llama_index/evaluator.py", "with_llama_index/test_responses.py"): [
        ("llama_index_broken_answer", 'problem is None or "response" not in', 'problem is None or "response" in'),
    ],
    ("integrations/ragstone_llama_index/evaluator.py", "with_llama_index/test_evaluator.py"): [
        ("llama_index_kept_prompts", "if step not in texts}", "if step in texts}"),
    ],
    (
        "integrations/ragstone_llama_index/legacy.py",
        "with_llama_index/test_monitor_handlers.py with_llama_index/test_monitor_runs.py",
    ): [
        ("llama_index_legacy_twice", " and not handlers_of(self._recorder.monitor)", ""),
        (
            "llama_index_legacy_error",
            "fields.get(EventPayload.RESPONSE)) is not None:",
            "fields.get(EventPayload.RESPONSE)) is not fields:",
        ),
    ],
    ("integrations/ragstone_llama_index/shared_model.py", "with_llama_index/test_tracing.py"): [
        ("llama_index_judge_tag", "JUDGE_TAG: True}", "}"),
        (
            "llama_index_telemetry",
            "telemetry.attach(context)",
            "telemetry.attach(telemetry.set_value('', 0))",
        ),
    ],
}


def mutants(names: list[str]) -> list[Mutant]:
    every = [
        Mutant(name, file, old, new, tuple(existing(path) for path in tests.split()))
        for (file, tests), changes in TABLE.items()
        for name, old, new in changes
    ]
    return [mutant for mutant in every if not names or mutant.name.startswith(tuple(names))]


def existing(path: str) -> str:
    """Return a path of tests, or their folder's when the file was merged into another."""
    tests = Path("tests", path)
    return str(tests if (ROOT / tests).exists() else tests.parent)


def copied(folder: Path) -> Path:
    """Copy what git tracks, as it is in the work tree, with byte code that knows its source by its text."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    compiling = [
        sys.executable,
        "-m",
        "compileall",
        "-q",
        "--invalidation-mode",
        "checked-hash",
        "core",
        "integrations",
    ]
    subprocess.run(compiling, cwd=folder, check=True)
    return folder


def passes(tests: tuple[str, ...], folder: Path) -> bool:
    roots = os.pathsep.join(str(folder / root) for root in ("core", "integrations"))
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-m", "not model and not slow"]
    run = subprocess.Popen(
        [*command, *tests],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": roots, "PYTHONDONTWRITEBYTECODE": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        return run.wait(timeout=LONGEST) in (0, 5)  # 5: all of them were skipped
    except subprocess.TimeoutExpired:
        os.killpg(run.pid, signal.SIGKILL)
        run.wait()
        return False


def tried(mutant: Mutant, folder: Path) -> str:
    file = folder / mutant.file
    source = file.read_text(encoding="utf-8") if file.exists() else ""
    if source.count(mutant.old) != 1:
        return "does not apply"
    try:
        file.write_text(source.replace(mutant.old, mutant.new), encoding="utf-8")
        return "SURVIVED" if passes(mutant.tests, folder) else "killed"
    finally:
        file.write_text(source, encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description="Do the tests see each mutant?")
    parser.add_argument("--jobs", type=int, default=2, help="how many runs of tests at once")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="mutants whose names begin so")
    parser.add_argument("--no-baseline", action="store_true", help="trust the tests to pass without a mutant")
    options = parser.parse_args()
    chosen = mutants(options.only)
    with tempfile.TemporaryDirectory() as place, ThreadPoolExecutor(options.jobs) as pool:
        folders: queue.SimpleQueue[Path] = queue.SimpleQueue()
        for number in range(options.jobs):
            folders.put(copied(Path(place, str(number))))

        def in_a_folder(job: Callable[[Path], str]) -> str:
            folder, begun = folders.get(), time.monotonic()
            try:
                return f"{job(folder)} ({time.monotonic() - begun:.0f} s)"
            finally:
                folders.put(folder)

        def baseline(tests: tuple[str, ...], folder: Path) -> str:
            return "passes" if passes(tests, folder) else "FAILS"

        sets = [] if options.no_baseline else list(dict.fromkeys(mutant.tests for mutant in chosen))
        bad = False
        for tests, result in zip(sets, pool.map(in_a_folder, [partial(baseline, each) for each in sets]), strict=True):
            bad = bad or result.startswith("FAILS")
            print(f"{result} without a mutant: {' '.join(tests)}", flush=True)
        results = Counter[str]()
        runs = pool.map(in_a_folder, [partial(tried, mutant) for mutant in chosen])
        for mutant, result in zip(chosen, runs, strict=True):
            results[result.partition(" (")[0]] += 1
            print(f"{result:<15} {mutant.name}: {mutant.file}", flush=True)
    print(", ".join(f"{n} {result}" for result, n in results.items()))
    return int(bad or set(results) != {"killed"})


if __name__ == "__main__":
    sys.exit(main())
