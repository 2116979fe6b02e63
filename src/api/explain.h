/* The JSON object of torc_result_explain: where a call went, or would go, and why. Loop thread. */
#ifndef TC_API_EXPLAIN_H
#define TC_API_EXPLAIN_H

struct tc_call;

/* Returns the text, in the call's arena. For calls whose asked.explain is set. */
const char *tc_call_explain(struct tc_call *c);

#endif
