/*
 * test_azure.c - the parts of the Azure store that need no server: secrets, signatures, URLs.
 */
#include "test.h"

#include "store/azure/azure.h"
#include "store/azure/secret.h"

#include <stdio.h>
#include <stdlib.h>

static void
clear_environment(void)
{
	static const char *const names[] = {
		"AZURE_STORAGE_KEY", "AZURE_STORAGE_SAS_TOKEN", "AZURE_STORAGE_CONNECTION_STRING",
		"AZURE_STORAGE_SERVICE_ENDPOINT"
	};

	EACH(i, names)
		unsetenv(names[i]);
}

FIXTURE(clear_environment, NULL);

/* ---- Signatures ---- */

/* By another program, from the text of Microsoft's page "Authorize with Shared Key". */
TEST(requests_are_signed_as_microsoft_does)
{
	static const struct {
		struct azure_signed q;
		const char *want;
	} rows[] = {
		{ { .method = "PUT", .path = "/c/0/group/1", .query = "", .range = "", .body = 5, .if_absent = true },
		  "SharedKey jobs:5FjXyG8ABRQ8Yt+UdXCEpjN0Ga/EN5a3QIm5tfwfMPs=" },
		{ { .method = "GET", .path = "/c", .query = "comp=list&marker=2%2192%2Fx&restype=container", .range = "" },
		  "SharedKey jobs:WBhOh5PGyaL2FWChQDqEzb1R5gNosKnvrJGY7H4wU+s=" },
		{ { .method = "GET", .path = "/jobs/c/x", .query = "", .range = "bytes=0-9" },
		  "SharedKey jobs:+NRTWjMBteg8kW2KCqq3Jui3POn1Gmn81mpaqdSp/W4=" },
	};
	struct azure_secret secret;
	struct slu_err err;

	setenv("AZURE_STORAGE_KEY", "dGhlIGtleQ==", 1);
	CHECK_EQ(0, azure_secret_read(&secret, NULL, &err));
	EACH(i, rows) {
		struct azure_signed q = rows[i].q;

		q.account = "jobs";
		q.wall = 1369353600 * SLU_SEC;
		CHECK(azure_sign(&q, &secret));
		CHECK_STR("Fri, 24 May 2013 00:00:00 GMT", q.date);
		CHECK_STR(rows[i].want, q.authorization);
	}
}

/* ---- Secrets ---- */

static void
write_file(const char *name, const char *text)
{
	FILE *const f = fopen(name, "w");

	CHECK(f);
	fputs(text, f);
	fclose(f);
}

/* "key n", "sas TEXT" or the text of the error. */
static const char *
secret_of(const char *file)
{
	static char text[AZURE_SAS_MAX + 300];
	struct azure_secret s;
	struct slu_err err;

	if (azure_secret_read(&s, file, &err))
		snprintf(text, sizeof text, "%s", err.text);
	else if (s.key_n)
		snprintf(text, sizeof text, "key %zu", s.key_n);
	else
		snprintf(text, sizeof text, "sas %s", s.sas);
	return text;
}

TEST(a_file_has_the_form_of_a_connection_string)
{
	static const char *const rows[][2] = {
		{ "AccountKey=YWJj", "key 3" },
		{ "DefaultEndpointsProtocol=https;AccountName=jobs;AccountKey=YWI=;EndpointSuffix=x", "key 2" },
		{ "BlobEndpoint=https://x/\n SharedAccessSignature=?sv=1&sig=a%3D\r\n", "sas sv=1&sig=a%3D" },
		{ "AccountName=jobs", "file: no AccountKey= and no SharedAccessSignature=" },
		{ "AccountKey=se_cret", "invalid account key; expected base64" },
		{ "SharedAccessSignature=secret", "invalid shared access signature; expected sv=...&sig=..." },
	};

	EACH(i, rows) {
		write_file("file", rows[i][0]);
		CHECK_STR(rows[i][1], secret_of("file"));
	}
	CHECK_CONTAINS("absent: No such file", secret_of("absent"));
}

TEST(the_environment_has_a_key_a_signature_or_both_in_a_string)
{
	CHECK_CONTAINS("set AZURE_STORAGE_KEY or AZURE_STORAGE_SAS_TOKEN, or credentials=FILE", secret_of(NULL));
	setenv("AZURE_STORAGE_CONNECTION_STRING", "AccountName=jobs;AccountKey=YWJjZA==", 1);
	CHECK_STR("key 4", secret_of(NULL));
	setenv("AZURE_STORAGE_SAS_TOKEN", "?sp=r&sig=x", 1);
	CHECK_STR("sas sp=r&sig=x", secret_of(NULL));
	setenv("AZURE_STORAGE_KEY", "YWJj", 1);
	CHECK_STR("key 3", secret_of(NULL));
}

TEST(a_signature_says_when_it_ends)
{
	static const struct {
		const char *sas;
		slu_time want;
	} rows[] = {
		{ "sv=1&se=2013-05-24T00%3A00%3A00Z&sig=x", 1369353600 * SLU_SEC },
		{ "sv=1&se=2013-05-24T00:00:01Z&sig=x", 1369353601 * SLU_SEC },
		{ "se=2013-05-24&sig=x", 1369353600 * SLU_SEC },
		{ "sv=1&sig=x", SLU_NEVER },
		{ "se=soon&sig=x", SLU_NEVER },
	};

	EACH(i, rows) {
		struct azure_secret s;
		struct slu_err err;

		setenv("AZURE_STORAGE_SAS_TOKEN", rows[i].sas, 1);
		CHECK_EQ(0, azure_secret_read(&s, NULL, &err));
		CHECK_EQ(rows[i].want, s.until);
	}
}

/* ---- URLs ---- */

TEST(a_wrong_url_is_refused_and_says_why)
{
	static const char *const rows[][2] = {
		{ "azure://", "invalid account" },
		{ "azure://jobs", "invalid container" },
		{ "azure://Jobs/c", "invalid account" },
		{ "azure://jobs/C", "invalid container" },
		{ "azure://key:secret@jobs/abc", "keys in the URL are refused" },
		{ "azure://jobs/abc?sig=secret", "keys in the URL are refused" },
		{ "azure://jobs/abc?color=red", "invalid parameter: color; expected endpoint, style, ca, proxy or credentials" },
		{ "azure://jobs/abc?endpoint=http://h", "expected https://" },
		{ "azure://jobs/abc/a b", "invalid prefix" },
		{ "azure://jobs/abc", "no key" },
	};
	const struct store_ops *const stores[] = { &store_azure, NULL };

	EACH(i, rows) {
		const struct store_conf conf = { .url = rows[i][0] };
		struct slu_err err;
		struct store *s;

		CHECK_EQ(STORE_REFUSED, store_open(&s, stores, &conf, &err), rows[i][0]);
		CHECK_CONTAINS(rows[i][1], err.text);
		CHECK(strstr(err.text, "secret") == NULL);
	}
}
