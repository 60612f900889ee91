#include "cli/lib/progress.h"

#include "base/clock.h"
#include "base/parse.h"

#include <stdio.h>
#include <unistd.h>

enum {
	BAR = 20, /* width of the bar */
	MIB = 1 << 20
};

void
progress_begin(struct progress *p, const char *what, uint64_t total, bool bytes)
{
	*p = (struct progress){
		.what = what,
		.total = total,
		.bytes = bytes,
		.on = isatty(STDERR_FILENO),
		.began = clock_mono(&clock_system),
	};
	progress_at(p, 0);
}

static void
draw_numbers(const struct progress *p, uint64_t done, double rate)
{
	const double unit = p->bytes ? MIB : 1;

	fprintf(stderr, p->bytes ? "  %.1f of %.1f MiB  %.1f MiB/s" : "  %.0f of %.0f  %.0f/s",
		(double)done / unit, (double)p->total / unit, rate / unit);
}

static void
draw(const struct progress *p, uint64_t done, slu_time now)
{
	const uint64_t most = p->total > done ? p->total : done;
	const double part = most ? (double)done / (double)most : 1;
	const double rate = now > p->began ? (double)done * 1e9 / (double)(now - p->began) : 0;
	const int full = (int)(part * BAR);
	char left[DURATION_TEXT];

	fprintf(stderr, "\r%s  [%.*s%.*s] %3d %%", p->what, full, "####################",
		BAR - full, "....................", (int)(part * 100));
	draw_numbers(p, done, rate);
	if (rate > 0 && done < most)
		fprintf(stderr, "  %s left",
			format_duration((slu_time)((double)(most - done) / rate) * SLU_SEC, left,
					sizeof left));
	fputs("\033[K", stderr);
	fflush(stderr);
}

void
progress_at(struct progress *p, uint64_t done)
{
	const slu_time now = clock_mono(&clock_system);

	if (!p->on || (p->drawn && now - p->drawn < 100 * SLU_MS && done < p->total))
		return;
	p->drawn = now;
	draw(p, done, now);
}

void
progress_end(struct progress *p)
{
	if (p->on)
		fputs("\r\033[K", stderr);
	p->on = false;
}
