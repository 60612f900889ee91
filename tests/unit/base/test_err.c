#include "test.h"

#include <sluice/err.h>

#include <errno.h>
#include <stdio.h>

TEST(every_code_has_a_whole_row)
{
	for (int code = SLU_CODE_BASE + 1; code < SLU_CODE_END; code++) {
		const struct slu_err_row *row = slu_err_row(code);

		CHECK(row->c_name && row->flat_name && row->text);
		CHECK_STR(row->flat_name, row->lockd_name); /* deprecated */
		CHECK(row->flat_status >= 200 && row->flat_status < 600);
		CHECK_EQ(row->flat_status, row->lockd_status);
	}
}

TEST(names_of_the_flat_api_tell_codes_apart)
{
	for (int a = SLU_CODE_BASE + 1; a < SLU_CODE_END; a++)
		for (int b = SLU_CODE_BASE + 1; b < a; b++)
			CHECK(strcmp(slu_err_row(a)->flat_name, slu_err_row(b)->flat_name) != 0);
}

TEST(an_unknown_code_still_has_a_row)
{
	CHECK_EQ(500, slu_err_row(-1)->flat_status);
	CHECK_EQ(500, slu_err_row(SLU_CODE_BASE)->flat_status);
	CHECK_EQ(500, slu_err_row(SLU_CODE_END)->flat_status);
	CHECK_EQ(200, slu_err_row(SLU_OK)->flat_status);
}

TEST(no_errno_is_a_code)
{
	CHECK_STR("SLU_?", slu_err_row(EBUSY)->c_name);
	CHECK_STR("SLU_?", slu_err_row(EHWPOISON)->c_name); /* the last there is */
}

TEST(fail_fills_the_text_and_returns_the_code)
{
	struct slu_err err = { .shard = 7 };

	errno = ENOENT;
	CHECK_EQ(SLU_EDOWN, slu_fail(&err, SLU_EDOWN, "open %s: %m", "x.log"));
	CHECK_EQ(SLU_EDOWN, err.code);
	CHECK_STR("open x.log: No such file or directory", err.text);
	CHECK_EQ(0, err.shard, "what an earlier failure left is gone");
}

TEST(fail_cuts_a_long_text_and_takes_no_err)
{
	char text[1000];
	struct slu_err err;

	memset(text, 'x', sizeof text);
	text[sizeof text - 1] = 0;
	CHECK_EQ(SLU_EINVAL, slu_fail(&err, SLU_EINVAL, "%s", text));
	CHECK_EQ(sizeof err.text - 1, strlen(err.text));
	CHECK_EQ(SLU_EINVAL, slu_fail(NULL, SLU_EINVAL, "nobody listens"));
}
