/* SPDX-License-Identifier: MIT */
/* record.c - build/bench.json: parts with records, and what is known of the machine. bench/report makes the page of it.
 */
#include "bench.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#define PARTS_MAX 12

static struct part {
	const char *name;
	char *text;
	size_t len;
	FILE *out;
} parts[PARTS_MAX];

static unsigned fields; /* of the record that is written now */

static struct part *
part_of(const char *name)
{
	for (struct part *p = parts; p < parts + PARTS_MAX; p++) {
		if (!p->name) {
			p->name = name;
			p->out = open_memstream(&p->text, &p->len);
			if (!p->out)
				die("out of memory");
		}
		if (strcmp(p->name, name) == 0)
			return p;
	}
	die("too many parts");
}

FILE *
record_begin(const char *part)
{
	FILE *out = part_of(part)->out;

	(void)fputs(ftell(out) > 0 ? ",\n  {" : "  {", out);
	fields = 0;
	return out;
}

static void
name_field(FILE *out, const char *name)
{
	(void)fprintf(out, "%s\"%s\":", fields++ > 0 ? ", " : "", name);
}

/* Our own texts and what the machine calls itself: nothing in them needs more than this. */
void
record_text(FILE *out, const char *name, const char *value)
{
	name_field(out, name);
	(void)fputc('"', out);
	for (const char *c = value; *c; c++)
		if (*c == '"' || *c == '\\')
			(void)fprintf(out, "\\%c", *c);
		else if ((unsigned char)*c >= 0x20)
			(void)fputc(*c, out);
	(void)fputc('"', out);
}

void
record_number(FILE *out, const char *name, double value)
{
	name_field(out, name);
	(void)fprintf(out, "%.10g", value);
}

void
record_flag(FILE *out, const char *name, bool value)
{
	name_field(out, name);
	(void)fputs(value ? "true" : "false", out);
}

void
record_end(FILE *out)
{
	(void)fputc('}', out);
}

/* ---- The machine ---- */

static void
record_cpu(FILE *out)
{
	FILE *file = fopen("/proc/cpuinfo", "r");
	char line[256], model[256] = "unknown";

	while (file && fgets(line, sizeof(line), file))
		if (strncmp(line, "model name", 10) == 0 && strchr(line, ':')) {
			(void)snprintf(model, sizeof(model), "%s", strchr(line, ':') + 2);
			break;
		}
	if (file)
		(void)fclose(file);
	model[strcspn(model, "\n")] = '\0';
	record_text(out, "cpu", model);
	record_number(out, "cpus", (double)sysconf(_SC_NPROCESSORS_ONLN));
	record_number(out, "memory_bytes", (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE));
}

static void
read_ticks(double *all, double *idle)
{
	FILE *file = fopen("/proc/stat", "r");
	double v[8] = { 0 };

	*all = *idle = 0;
	if (file && fscanf(file, "cpu %lf %lf %lf %lf %lf %lf %lf %lf", &v[0], &v[1], &v[2], &v[3], &v[4], &v[5], &v[6],
			&v[7]) == 8) {
		for (size_t i = 0; i < 8; i++)
			*all += v[i];
		*idle = v[3] + v[4];
	}
	if (file)
		(void)fclose(file);
}

double
busy_share(void)
{
	double all, idle, all_then, idle_then;

	read_ticks(&all_then, &idle_then);
	(void)sleep(1);
	read_ticks(&all, &idle);
	return all > all_then ? 1 - (idle - idle_then) / (all - all_then) : 0;
}

static void
record_machine(const struct bench *b)
{
	FILE *out = record_begin("machine");
	struct utsname name;
	char date[32] = "";
	time_t now = time(NULL);

	if (uname(&name) < 0)
		die("uname");
	(void)strftime(date, sizeof(date), "%Y-%m-%d %H:%M UTC", gmtime(&now));
	record_text(out, "kernel", name.release);
	record_text(out, "arch", name.machine);
	record_cpu(out);
	record_text(out, "file_system", b->file_system);
	record_text(out, "date", date);
	record_number(out, "busy", b->busy);
	record_text(out, "parts", b->parts ? b->parts : "all");
	record_number(out, "archived", (double)b->archived);
	record_end(out);
}

void
records_write(const struct bench *b)
{
	FILE *out = fopen(b->json, "w");

	record_machine(b);
	if (!out)
		die("cannot write '%s'", b->json);
	(void)fputc('{', out);
	for (struct part *p = parts; p < parts + PARTS_MAX && p->name; p++) {
		if (fclose(p->out) != 0)
			die("out of memory");
		(void)fprintf(out, "%s\"%s\":[\n%s\n]", p == parts ? "" : ",\n", p->name, p->text);
		free(p->text);
	}
	(void)fputs("}\n", out);
	if (fclose(out) != 0)
		die("cannot write '%s'", b->json);
	(void)printf("written to %s\n", b->json);
}
