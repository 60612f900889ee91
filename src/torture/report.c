#include "torture/report.h"

#include "base/json/json_out.h"
#include "torture/times.h"

#include <inttypes.h>

enum {
	JSON_MAX = 1 << 20
};

/* A row of the counts: a kind of event and its name. */
static const struct {
	enum event_kind kind;
	const char *word;
} counted[] = {
	{ EVENT_PUSH, "pushes" },
	{ EVENT_CLAIM, "deliveries" },
	{ EVENT_ACK, "acks" },
	{ EVENT_NACK, "nacks" },
	{ EVENT_EXTEND, "extends" },
	{ EVENT_ACQUIRE, "acquires" },
	{ EVENT_UPDATE, "updates" },
	{ EVENT_RELEASE, "releases" },
	{ EVENT_TICK, "ticks" },
};

enum {
	N_COUNTED = sizeof counted / sizeof counted[0]
};

static double
seconds(slu_time t)
{
	return (double)t / 1e9;
}

/* --- for people ----------------------------------------------------------------------- */

static void
text_faults(const struct torture *t, FILE *out)
{
	for (unsigned i = 0; torture_faults[i].name; i++) {
		const struct torture_fault *f = &torture_faults[i];
		const char *missing = torture_missing(t, f);

		if (!(t->conf->faults >> i & 1))
			continue;
		if (missing)
			fprintf(out, "  %-12s skipped: %s\n", f->name, missing);
		else
			fprintf(out, "  %-12s %" PRIu64 "\n", f->name, (uint64_t)t->hurts[i]);
	}
}

static void
text_gaps(const struct torture *t, FILE *out)
{
	if (t->gaps.n)
		fprintf(out, "\nanother server delivered after %.1f s on average, %.1f s at most\n",
			seconds(t->gaps.sum) / (double)t->gaps.n, seconds(t->gaps.max));
}

static void
text_counts(const struct torture *t, FILE *out)
{
	fprintf(out, "\n  %-12s %10s %10s %10s\n", "", "OK", "REFUSED", "UNKNOWN");
	for (unsigned i = 0; i < N_COUNTED; i++) {
		const uint64_t *n = t->counts[counted[i].kind];

		fprintf(out, "  %-12s %10" PRIu64 " %10" PRIu64 " %10" PRIu64 "\n", counted[i].word,
			n[OUTCOME_OK], n[OUTCOME_FAILED], n[OUTCOME_UNKNOWN]);
	}
}

/* Prints the details of an event. */
static void
text_event(const struct event *e, slu_time zero, FILE *out)
{
	fprintf(out, "  %+11.6f  %-8.6f  ", seconds(e->start - zero), seconds(e->end - e->start));
	if (e->kind == EVENT_FAULT) {
		fprintf(out, "-- %s --\n", torture_faults[e->name].name);
		return;
	}
	fprintf(out, "client %-4u  %-12s %-7s", e->client, event_kinds[e->kind], outcomes[e->outcome]);
	if (e->kind <= EVENT_DEAD)
		fprintf(out, "  message %" PRIu64 "  id %" PRIu64, e->name, e->id);
	if (e->kind >= EVENT_ACQUIRE)
		fprintf(out, "  lock %u  value %" PRIu64, e->key, e->name);
	else if (e->key)
		fprintf(out, "  key k%u", e->key);
	if (e->token)
		fprintf(out, "  token %" PRIu64, e->token);
	if (e->kind == EVENT_CLAIM)
		fprintf(out, "  delivery %u, lease %.3f s", e->attempts, seconds(e->until - e->granted));
	if (e->kind == EVENT_ROW)
		fprintf(out, "  %s", event_states[e->state]);
	fputc('\n', out);
}

/* Prints the events, with the faults that occurred between them. */
static void
text_events(const struct torture *t, const struct finding *f, FILE *out)
{
	const struct history *h = &t->history;
	const slu_time zero = f->events[0]->start;

	fprintf(out, "\n  %11s  %-8s\n", "BEGAN s", "TOOK s");
	for (size_t i = 0; i < f->n_events; i++) {
		const struct event *e = f->events[i];
		const slu_time next = i + 1 < f->n_events ? f->events[i + 1]->start : e->end;

		text_event(e, zero, out);
		for (size_t j = 0; j < h->n; j++)
			if (h->events[j].kind == EVENT_FAULT && h->events[j].start >= e->start &&
			    h->events[j].start < next)
				text_event(&h->events[j], zero, out);
	}
}

static void
text_findings(struct torture *t, FILE *out)
{
	const struct check_rule *worst = check_worst(&t->check);

	if (t->trouble[0])
		fprintf(out, "  I10 %s\n", t->trouble);
	for (const struct check_rule *r = check_rules; r->id; r++) {
		const uint64_t n = t->check.found[r - check_rules].n;

		if (n)
			fprintf(out, "  %-3s %-10s broken %" PRIu64 " times: %s\n", r->id, r->name, n, r->promise);
	}
	if (worst) {
		const struct finding *f = &t->check.found[worst - check_rules];

		fprintf(out, "\nthe shortest counter-example, of %s: %s\n", worst->id, f->text);
		text_events(t, f, out);
	}
}

static void
text_log(struct torture *t, FILE *out)
{
	char said[TARGET_TAIL];

	for (unsigned i = 0; t->nodes[0].ours && i < t->n_nodes; i++) {
		if (t->trouble[0] && i != t->troubled)
			continue;
		target_said(&t->nodes[i], said);
		fprintf(out, "\nlast output of the server at %s:\n%s", t->nodes[i].served.address.text, said);
	}
}

void
report_text(struct torture *t, const char *again, FILE *out)
{
	fprintf(out, "sluiced %s, engine %s, durability %s\n", t->nodes[0].served.version,
		t->nodes[0].served.engine, t->nodes[0].served.durability);
	fprintf(out, "%u rounds in %.1f s, seed %" PRIu64 "\n\n", t->rounds,
		seconds(time_now() - t->begun), t->conf->seed);
	text_faults(t, out);
	text_gaps(t, out);
	text_counts(t, out);
	if (t->failed) {
		fprintf(out, "\nBROKEN\n");
		text_findings(t, out);
		text_log(t, out);
	} else {
		fprintf(out, "\npassed: every promise was kept (I1 to I15)%s\n",
			t->interrupted ? ", until the run was stopped" : "");
	}
	fprintf(out, "again: %s\n", again);
}

/* --- as JSON --------------------------------------------------------------------------- */

static void
json_faults(const struct torture *t, struct json_out *w)
{
	json_out_array(w, "faults");
	for (unsigned i = 0; torture_faults[i].name; i++) {
		const char *missing = torture_missing(t, &torture_faults[i]);

		if (!(t->conf->faults >> i & 1))
			continue;
		json_out_object(w, NULL);
		json_out_str(w, "name", slice_of(torture_faults[i].name));
		json_out_u64(w, "times", t->hurts[i]);
		if (missing)
			json_out_str(w, "skipped", slice_of(missing));
		json_out_close(w);
	}
	json_out_close(w);
}

static void
json_gaps(const struct torture *t, struct json_out *w)
{
	if (!t->gaps.n)
		return;
	json_out_object(w, "takeovers");
	json_out_u64(w, "times", t->gaps.n);
	json_out_u64(w, "mean_ms", (uint64_t)(t->gaps.sum / SLU_MS) / t->gaps.n);
	json_out_u64(w, "max_ms", (uint64_t)(t->gaps.max / SLU_MS));
	json_out_close(w);
}

static void
json_counts(const struct torture *t, struct json_out *w)
{
	json_out_object(w, "counts");
	for (unsigned i = 0; i < N_COUNTED; i++) {
		json_out_object(w, counted[i].word);
		for (int o = OUTCOME_OK; o <= OUTCOME_UNKNOWN; o++)
			json_out_u64(w, outcomes[o], t->counts[counted[i].kind][o]);
		json_out_close(w);
	}
	json_out_close(w);
}

static void
json_event(const struct event *e, slu_time zero, struct json_out *w)
{
	json_out_object(w, NULL);
	json_out_str(w, "event", slice_of(event_kinds[e->kind]));
	json_out_i64(w, "start_ns", e->start - zero);
	json_out_i64(w, "end_ns", e->end - zero);
	json_out_str(w, "outcome", slice_of(outcomes[e->outcome]));
	json_out_u64(w, "client", e->client);
	if (e->kind == EVENT_FAULT)
		json_out_str(w, "fault", slice_of(torture_faults[e->name].name));
	else
		json_out_u64(w, e->kind >= EVENT_ACQUIRE ? "value" : "message", e->name);
	json_out_u64(w, "id", e->id);
	json_out_u64(w, "token", e->token);
	json_out_u64(w, e->kind >= EVENT_ACQUIRE ? "lock" : "key", e->key);
	if (e->kind == EVENT_CLAIM) {
		json_out_time(w, "granted", e->granted);
		json_out_time(w, "until", e->until);
		json_out_time(w, "due", e->due);
		json_out_u64(w, "attempts", e->attempts);
	}
	json_out_close(w);
}

static void
json_findings(const struct torture *t, struct json_out *w)
{
	json_out_array(w, "broken");
	for (const struct check_rule *r = check_rules; r->id; r++) {
		const struct finding *f = &t->check.found[r - check_rules];

		if (!f->n)
			continue;
		json_out_object(w, NULL);
		json_out_str(w, "invariant", slice_of(r->id));
		json_out_str(w, "rule", slice_of(r->name));
		json_out_str(w, "promise", slice_of(r->promise));
		json_out_u64(w, "times", f->n);
		json_out_str(w, "shortest", slice_of(f->text));
		json_out_array(w, "events");
		for (size_t i = 0; i < f->n_events; i++)
			json_event(f->events[i], f->events[0]->start, w);
		json_out_close(w);
		json_out_close(w);
	}
	json_out_close(w);
}

static void
json_all(struct torture *t, const char *again, struct json_out *w)
{
	json_out_object(w, NULL);
	json_out_str(w, "verdict", t->failed ? SLICE("broken") : SLICE("passed"));
	json_out_bool(w, "interrupted", t->interrupted);
	json_out_u64(w, "seed", t->conf->seed);
	json_out_str(w, "again", slice_of(again));
	json_out_str(w, "version", slice_of(t->nodes[0].served.version));
	json_out_str(w, "engine", slice_of(t->nodes[0].served.engine));
	json_out_str(w, "durability", slice_of(t->nodes[0].served.durability));
	json_out_u64(w, "rounds", t->rounds);
	json_out_u64(w, "seconds", (uint64_t)seconds(time_now() - t->begun));
	json_faults(t, w);
	json_gaps(t, w);
	json_counts(t, w);
	json_findings(t, w);
	if (t->trouble[0])
		json_out_str(w, "trouble", slice_of(t->trouble));
	json_out_finish(w);
}

int
report_json(struct torture *t, const char *again, FILE *out)
{
	struct json_out w;
	struct buf b;
	int rc;

	buf_init(&b, JSON_MAX);
	json_out_init(&w, &b);
	json_all(t, again, &w);
	rc = b.failed ? SLU_ENOMEM : 0;
	fprintf(out, "%s\n", buf_str(&b));
	buf_release(&b);
	return rc;
}

int
report_history(const struct torture *t, const char *path, struct slu_err *err)
{
	FILE *out = fopen(path, "we");
	struct json_out w;
	struct buf b;
	int rc;

	if (!out)
		return slu_fail(err, SLU_EDOWN, "%s: %m", path);
	buf_init(&b, JSON_MAX);
	for (size_t i = 0; i < t->history.n; i++) {
		buf_clear(&b);
		json_out_init(&w, &b);
		json_event(&t->history.events[i], t->begun, &w);
		fprintf(out, "%s\n", buf_str(&b));
	}
	rc = b.failed || ferror(out);
	buf_release(&b);
	rc = fclose(out) != 0 || rc;
	return rc ? slu_fail(err, SLU_EDOWN, "cannot write %s: %m", path) : 0;
}
