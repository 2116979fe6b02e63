/* TC_CASE(RH01): says that the test that runs now has covered a row of the case tables. The id is appended to
 * $TC_CASE_DIR/<program>, from which the run's closing table is made; so only what was executed counts. Put it at the
 * end of the test, after its asserts. */
#ifndef TC_SUPPORT_CASE_H
#define TC_SUPPORT_CASE_H

#define TC_CASE(id) tc_case_record(#id)

void tc_case_record(const char *id);

#endif
