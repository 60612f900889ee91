#include "base/nearest.h"

#include <stdbool.h>
#include <string.h>

enum {
	SLIPS = 3,
	BEGUN = 4 /* letters that are enough as the beginning of a name */
};

static unsigned
min3(unsigned a, unsigned b, unsigned c)
{
	const unsigned m = a < b ? a : b;

	return m < c ? m : c;
}

/* Three rows of the table are enough: a swap needs the row two before. */
unsigned
edit_distance(const char *a, const char *b)
{
	const size_t n = strlen(a), m = strlen(b);
	unsigned rows[3][NEAREST_MAX + 1];

	if (n > NEAREST_MAX || m > NEAREST_MAX)
		return NEAREST_MAX + 1;
	for (unsigned j = 0; j <= m; j++)
		rows[0][j] = j;
	for (unsigned i = 1; i <= n; i++) {
		unsigned *const row = rows[i % 3];
		const unsigned *const above = rows[(i - 1) % 3];
		const unsigned *const before = rows[(i + 1) % 3];

		row[0] = i;
		for (unsigned j = 1; j <= m; j++) {
			const unsigned same = a[i - 1] == b[j - 1] ? 0 : 1;

			row[j] = min3(above[j] + 1, row[j - 1] + 1, above[j - 1] + same);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] &&
			    a[i - 2] == b[j - 1] && before[j - 2] + 1 < row[j])
				row[j] = before[j - 2] + 1;
		}
	}
	return rows[n % 3][m];
}

struct nearest
nearest_to(const char *written)
{
	return (struct nearest){ .written = written, .distance = SLIPS + 1 };
}

void
nearest_try(struct nearest *best, const char *name)
{
	const size_t n = strlen(best->written);
	const bool begun = n >= BEGUN && strncmp(name, best->written, n) == 0;
	const unsigned d = begun ? 0 : edit_distance(best->written, name);

	if (d < best->distance && 2 * d <= strlen(name)) {
		best->distance = d;
		best->name = name;
	}
}
