#include "api/pause.h"

#include "base/mem.h"

enum {
	LENGTH = 200, /* ms */
	MOST = 300    /* in a row */
};

struct pause {
	uv_timer_t timer;
	struct apicall *apicall;
	void (*go_on)(struct apicall *a);
};

static void
on_closed(uv_handle_t *timer)
{
	mem_free(timer->data);
}

static void
on_time(uv_timer_t *timer)
{
	const struct pause *const p = timer->data;
	struct apicall *const a = p->apicall;
	void (*const go_on)(struct apicall * a) = p->go_on;

	uv_close((uv_handle_t *)timer, on_closed);
	go_on(a);
}

bool
pause_is_in_vain(const struct apicall *a)
{
	return a->gone || atomic_load(&a->api->draining);
}

static bool
is_moved(const struct apicall *a)
{
	return (a->op.rc == SLU_EMOVED || a->op.rc == SLU_EUNKNOWN) && broker_has_remote(a->api->broker);
}

bool
pause_stream(struct apicall *a, unsigned *n, void (*go_on)(struct apicall *a))
{
	uv_loop_t *const loop = loop_uv(exchange_loop(a->x));
	struct pause *p;

	if (!is_moved(a) || pause_is_in_vain(a) || ++*n > MOST)
		return false;
	p = mem_zalloc(sizeof *p);
	if (!p)
		return false;
	p->apicall = a;
	p->go_on = go_on;
	(void)uv_timer_init(loop, &p->timer); /* always 0 */
	p->timer.data = p;
	uv_update_time(loop); /* the time of the turn, which may be old */
	(void)uv_timer_start(&p->timer, on_time, LENGTH, 0);
	return true;
}
