#include "core/queue/message.h"

/* MSG_NONE is before the first and after the last. */
#define TO(state) (1u << MSG_##state)

const unsigned char msg_changes[MSG_STATES] = {
	[MSG_NONE] = TO(READY) | TO(DELAYED) | TO(HELD) | TO(LEASED) | TO(DEAD) | TO(DAMAGED),
	[MSG_READY] = TO(LEASED) | TO(DEAD) | TO(HELD) | TO(DELAYED) | TO(READY) | TO(NONE),
	[MSG_DELAYED] = TO(READY) | TO(HELD) | TO(DEAD) | TO(DELAYED) | TO(NONE),
	[MSG_LEASED] = TO(READY) | TO(DELAYED) | TO(DEAD) | TO(DAMAGED) | TO(NONE),
	[MSG_HELD] = TO(READY) | TO(DEAD) | TO(NONE),
	[MSG_DEAD] = TO(READY) | TO(DELAYED) | TO(HELD) | TO(NONE),
	[MSG_DAMAGED] = TO(NONE),
};
