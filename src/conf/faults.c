#include "conf/faults.h"

#include "base/mem.h"

#include <stdarg.h>
#include <stdio.h>

void
faults_add(struct conf_faults *f, const char *fmt, ...)
{
	char text[FAULT_TEXT];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof text, fmt, ap); /* cut when long */
	va_end(ap);
	if (f->n < FAULTS_MAX)
		f->items[f->n] = mem_strdup(text);
	if (f->n < FAULTS_MAX && f->items[f->n])
		f->n++;
	else
		f->more++;
}

void
faults_release(struct conf_faults *f)
{
	while (f->n > 0)
		mem_free(f->items[--f->n]);
	f->more = 0;
}
