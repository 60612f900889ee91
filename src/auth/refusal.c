#include "auth/refusal.h"

const char *
refusal_name(enum refusal r)
{
	static const char *const names[REFUSALS_COUNT + 1] = {
#define X(name, text) [REFUSAL_##name] = text,
		REFUSALS(X)
#undef X
			[REFUSAL_NONE] = "none",
	};

	return names[r];
}
