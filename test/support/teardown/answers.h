/* An application's call credentials. They answer at random: with metadata or an error, at once or late from a thread of
 * their own. */
#ifndef TC_SUPPORT_TEARDOWN_ANSWERS_H
#define TC_SUPPORT_TEARDOWN_ANSWERS_H

#include <torc/torc.h>

struct answers;

struct answers *answers_new(void);
/* Call it after answers_settle: the credentials use `a`. */
void answers_free(struct answers *a);
/* Returns new credentials, which the caller unrefs. */
torc_call_credentials *answers_credentials(struct answers *a);
/* Waits until each request is answered and all credentials are destroyed. */
void answers_settle(struct answers *a);

#endif
