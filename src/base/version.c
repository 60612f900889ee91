#include <sluice/api.h>

_Static_assert(sizeof SLU_VERSION_TEXT == sizeof SLUICE_VERSION, "api.h and meson.build agree");

const char *
slu_version(void)
{
	return SLUICE_VERSION;
}
