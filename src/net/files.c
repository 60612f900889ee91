#include "net/files.h"

#include <sys/resource.h>

unsigned long
files_allow(unsigned long n)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r))
		return n; /* unknown: accept reports it */
	if (r.rlim_cur < n) {
		r.rlim_cur = n < r.rlim_max ? n : r.rlim_max;
		if (setrlimit(RLIMIT_NOFILE, &r) || getrlimit(RLIMIT_NOFILE, &r))
			return n;
	}
	return r.rlim_cur;
}
