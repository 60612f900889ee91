/*
 * fiber.h - a function with a stack of its own that runs only while its owner lets it.
 *
 *         f = fiber_new(move, job);
 *         while (fiber_resume(f))        move() runs until it yields, or returns
 *                 ...                    and stands still meanwhile
 *         fiber_free(f);
 *
 * Code that blocks so becomes something that a schedule can interleave with all else, step
 * by step and always in the same way. It is a thread, but never two of them run.
 */
#ifndef SIM_FIBER_H
#define SIM_FIBER_H

#include <stdbool.h>

struct fiber;

struct fiber *fiber_new(void (*run)(void *arg), void *arg);
bool fiber_resume(struct fiber *f); /* false: it has ended */
void fiber_yield(struct fiber *f);  /* by itself */
void fiber_free(struct fiber *f);   /* one that has ended */

#endif
