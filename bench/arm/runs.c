/* Runs a program file as often as told, on inputs that the session begins with:
 * runs MODEL.arena N
 * The marks of count.c end the start-up, the loading with a first run, and the runs. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "arenite.h"

static void run(arenite_session* session) {
  if (arenite_session_run(session) != ARENITE_OK) {
    fprintf(stderr, "%s\n", arenite_last_error());
    exit(1);
  }
}

int main(int count, char** words) {
  arenite_model* model;
  arenite_session* session;
  if (count != 3) { return 2; }
  getpgid(0);
  if (arenite_model_open(words[1], &model) != ARENITE_OK ||
      arenite_session_create(model, NULL, &session) != ARENITE_OK) {
    fprintf(stderr, "%s\n", arenite_last_error());
    return 1;
  }
  run(session);
  getpgid(0);
  for (long runs = atol(words[2]); runs > 0; --runs) { run(session); }
  getpgid(0);
  arenite_session_destroy(session);
  arenite_model_close(model);
  return 0;
}
