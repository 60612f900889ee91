/*
 * moves.c - the move tasks, which are not supported, and the actions of permissions.
 */
#include "api/sqs/out.h"
#include "api/sqs/queue.h"

void
sqs_list_moves(struct apicall *a)
{
	struct sqs_out o;

	sqs_out_begin(&o, a, NULL);
	sqs_out_list(&o, "Results", "ListMessageMoveTasksResultEntry");
	sqs_out_list_end(&o);
	sqs_out_end(&o);
}

void
sqs_start_move(struct apicall *a)
{
	sqs_refuse(a, SQS_UNSUPPORTED, "Move tasks are not supported: receive the messages and send them.");
}

void
sqs_cancel_move(struct apicall *a)
{
	sqs_refuse(a, SQS_NO_RESOURCE, "No such task.");
}

void
sqs_unsupported(struct apicall *a)
{
	sqs_refuse(a, SQS_UNSUPPORTED, "Permissions of queues are not supported: rights belong to access keys.");
}
