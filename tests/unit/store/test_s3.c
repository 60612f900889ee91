/*
 * test_s3.c - the parts of the S3 store that need no server: signatures, URLs, keys, answers.
 */
#include "test.h"

#include "store/s3/keys.h"
#include "store/s3/place.h"
#include "store/s3/sign.h"
#include "store/web/xml.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- Signatures ---- */

/* The examples of Amazon's page "Signature Calculations for the Authorization Header". */
TEST(requests_are_signed_as_amazon_does)
{
	static const struct {
		const char *query, *signature;
	} rows[] = {
		{ "lifecycle=", "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543" },
		{ "max-keys=2&prefix=J", "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7" },
	};
	const struct s3_keys keys = {
		.id = "AKIAIOSFODNN7EXAMPLE",
		.secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
	};

	EACH(i, rows) {
		struct s3_signed q = {
			.method = "GET",
			.host = "examplebucket.s3.amazonaws.com",
			.path = "/",
			.query = rows[i].query,
			.region = "us-east-1",
			.service = "s3",
			.wall = 1369353600 * SLU_SEC,
		};

		CHECK(s3_sign(&q, &keys));
		CHECK_STR("20130524T000000Z", q.date);
		CHECK_CONTAINS("Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request", q.authorization);
		CHECK_CONTAINS(rows[i].signature, q.authorization);
	}
}

TEST(a_session_token_is_signed)
{
	struct s3_keys keys = { .id = "a", .secret = "b", .token = "c" };
	struct s3_signed q = { .method = "GET", .host = "h", .path = "/", .query = "", .region = "r", .service = "s3" };

	CHECK(s3_sign(&q, &keys));
	CHECK_CONTAINS("SignedHeaders=host;x-amz-content-sha256;x-amz-date;x-amz-security-token,", q.authorization);
}

/* ---- URLs ---- */

static void
clear_environment(void)
{
	static const char *const names[] = {
		"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_REGION", "AWS_DEFAULT_REGION",
		"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE",
		"AWS_SHARED_CREDENTIALS_FILE", "AWS_CONTAINER_CREDENTIALS_FULL_URI",
		"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"
	};

	EACH(i, names)
		unsetenv(names[i]);
	setenv("AWS_EC2_METADATA_DISABLED", "true", 1);
	setenv("HOME", ".", 1);
}

FIXTURE(clear_environment, NULL);

TEST(a_url_says_where_the_bucket_is)
{
	static const struct {
		const char *url, *base, *root, *prefix, *region;
	} rows[] = {
		{ "jobs", "https://jobs.s3.us-east-1.amazonaws.com", "", "", "us-east-1" },
		{ "jobs/a/b?region=eu-west-3", "https://jobs.s3.eu-west-3.amazonaws.com", "", "a/b/", "eu-west-3" },
		{ "jobs/a/", "https://jobs.s3.us-east-1.amazonaws.com", "", "a/", "us-east-1" },
		{ "jobs?style=path", "https://s3.us-east-1.amazonaws.com", "/jobs", "", "us-east-1" },
		{ "jobs?endpoint=http%3A%2F%2F127.0.0.1%3A80", "http://127.0.0.1:80", "/jobs", "", "us-east-1" },
		{ "jobs?endpoint=https://h:9000/&style=virtual", "https://jobs.h:9000", "", "", "us-east-1" },
	};

	EACH(i, rows) {
		struct s3_place p;
		struct slu_err err = { 0 };

		if (s3_place_parse(&p, rows[i].url, false, &err))
			test_fail(__FILE__, __LINE__, "%s: %s", rows[i].url, err.text);
		CHECK_STR(rows[i].base, p.at.base);
		CHECK_STR(rows[i].root, p.root);
		CHECK_STR(rows[i].prefix, p.prefix);
		CHECK_STR(rows[i].region, p.region);
	}
}

TEST(the_environment_says_what_the_url_leaves_out)
{
	struct s3_place p;
	struct slu_err err;

	setenv("AWS_REGION", "ap-south-1", 1);
	setenv("AWS_ENDPOINT_URL", "https://minio:9000", 1);
	CHECK_EQ(0, s3_place_parse(&p, "jobs", false, &err));
	CHECK_STR("https://minio:9000", p.at.base);
	CHECK_STR("/jobs", p.root);
	CHECK_STR("ap-south-1", p.region);
}

TEST(a_wrong_url_is_refused_and_says_why)
{
	static const char *const rows[][2] = {
		{ "", "invalid bucket" },
		{ "Jobs", "invalid bucket" },
		{ "id:secret@jobs", "keys in the URL are refused" },
		{ "jobs?color=red", "invalid parameter: color" },
		{ "jobs?region", "expected NAME=VALUE" },
		{ "jobs?region=%4", "invalid value of region" },
		{ "jobs?style=new", "invalid style: new" },
		{ "jobs?endpoint=ftp://h", "invalid endpoint" },
		{ "jobs?endpoint=https://", "invalid endpoint" },
		{ "jobs?endpoint=https://h/path", "invalid endpoint" },
		{ "jobs?endpoint=http://h:80", "expected https://" },
		{ "jobs/a b", "invalid prefix" },
		{ "jobs/.a", "invalid prefix" },
	};

	EACH(i, rows) {
		struct s3_place p;
		struct slu_err err;

		CHECK_EQ(SLU_EINVAL, s3_place_parse(&p, rows[i][0], false, &err));
		CHECK_CONTAINS(rows[i][1], err.text);
		CHECK(strstr(err.text, "secret@") == NULL);
	}
}

TEST(another_machine_without_tls_must_be_wanted)
{
	struct s3_place p;
	struct slu_err err;

	CHECK_EQ(SLU_EINVAL, s3_place_parse(&p, "jobs?endpoint=http://h", false, &err));
	CHECK_EQ(0, s3_place_parse(&p, "jobs?endpoint=http://h", true, &err));
}

/* ---- Keys ---- */

static void
write_file(const char *name, const char *text)
{
	FILE *const f = fopen(name, "w");

	CHECK(f);
	fputs(text, f);
	fclose(f);
}

/* "id secret token", or the text of the error. */
static const char *
keys_of(const char *url)
{
	static char text[600];
	struct s3_place p;
	struct s3_keys keys;
	struct slu_err err = { 0 };

	CHECK_EQ(0, s3_place_parse(&p, url, false, &err));
	struct s3_chain *const c = s3_chain_new(&p, &err);

	if (c && s3_chain_keys(c, 0, false, &keys, &err) == 0)
		snprintf(text, sizeof text, "%.100s %.100s %.100s", keys.id, keys.secret, keys.token);
	else
		snprintf(text, sizeof text, "%s", err.text);
	s3_chain_free(c);
	return text;
}

TEST(keys_come_from_the_environment_first)
{
	write_file("creds", "[default]\naws_access_key_id=f\naws_secret_access_key=g\n");
	setenv("AWS_ACCESS_KEY_ID", "a", 1);
	CHECK_CONTAINS("expected both or none", keys_of("jobs?credentials=creds"));
	setenv("AWS_SECRET_ACCESS_KEY", "b", 1);
	CHECK_STR("a b ", keys_of("jobs?credentials=creds"));
	setenv("AWS_SESSION_TOKEN", "t", 1);
	CHECK_STR("a b t", keys_of("jobs?credentials=creds"));
}

TEST(keys_come_from_a_profile_of_a_file)
{
	write_file("creds", "# two\n[default]\naws_access_key_id = a\naws_secret_access_key = b\n\n"
			    "[other]\naws_access_key_id=c\naws_secret_access_key=d=\naws_session_token=e\n"
			    "[half]\naws_access_key_id=c\n");
	CHECK_STR("a b ", keys_of("jobs?credentials=creds"));
	CHECK_STR("c d= e", keys_of("jobs?credentials=creds&profile=other"));
	CHECK_CONTAINS("profile half has no aws_access_key_id", keys_of("jobs?credentials=creds&profile=half"));
	CHECK_CONTAINS("profile none is missing", keys_of("jobs?credentials=creds&profile=none"));
	setenv("AWS_PROFILE", "other", 1);
	setenv("AWS_SHARED_CREDENTIALS_FILE", "creds", 1);
	CHECK_STR("c d= e", keys_of("jobs"));
}

TEST(without_keys_the_text_says_how_to_set_them)
{
	CHECK_CONTAINS("set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or write ./.aws/credentials", keys_of("jobs"));
}

/* ---- Answers ---- */

TEST(elements_are_found_in_order)
{
	struct slice rest = SLICE("<?xml?><L><K>a</K><K></K><K>b&amp;c</K><K>cut"), text;
	char out[8];

	CHECK(xml_next(&rest, "K", &text) && slice_eq(text, SLICE("a")));
	CHECK(xml_next(&rest, "K", &text) && text.n == 0);
	CHECK(xml_next(&rest, "K", &text));
	CHECK(xml_text(text, out, sizeof out));
	CHECK_STR("b&c", out);
	CHECK(!xml_next(&rest, "K", &text));
	CHECK_EQ(0, xml_find(SLICE("<a>x</a>"), "b").n);
}

TEST(entities_are_replaced)
{
	static const char *const rows[][2] = {
		{ "&lt;&gt;&quot;&apos;&#65;&#x42;", "<>\"'AB" },
		{ "", "" },
		{ "&nbsp;", NULL },
		{ "&#0;", NULL },
		{ "&#300;", NULL },
		{ "&amp", NULL },
		{ "123456789", NULL },
	};

	EACH(i, rows) {
		char out[9];
		const bool ok = xml_text(slice_of(rows[i][0]), out, sizeof out);

		CHECK_EQ(rows[i][1] != NULL, ok);
		if (ok)
			CHECK_STR(rows[i][1], out);
	}
}
