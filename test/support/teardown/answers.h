/* An application's call credentials. They answer at random: with metadata or an error, at once or late from a thread of
 * their own. All functions but answers_free are for any thread. */
#ifndef TC_SUPPORT_TEARDOWN_ANSWERS_H
#define TC_SUPPORT_TEARDOWN_ANSWERS_H

#include <torc/torc.h>

struct answers;

/* Starts the thread. The caller frees the result; never NULL. */
struct answers *answers_new(void);
/* Ends the thread. Call it after answers_settle: the credentials use `a`. */
void answers_free(struct answers *a);
/* Returns new credentials, which the caller unrefs; never NULL. */
torc_call_credentials *answers_credentials(struct answers *a);
/* Waits until each request is answered and all credentials are destroyed. Waits forever while the caller or a channel
 * holds credentials. */
void answers_settle(struct answers *a);

#endif
