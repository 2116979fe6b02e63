/* TC_CASE(RH01) at the top of a test marks that the test asserts row RH01 of test/cases.md. TC_CASE appends the id to
 * $TC_CASE_DIR/<program>, from which scripts/case-table prints the rows that were executed; without that variable
 * TC_CASE does nothing. */
#ifndef TC_SUPPORT_CASE_H
#define TC_SUPPORT_CASE_H

#define TC_CASE(id) tc_case_record(#id)

void tc_case_record(const char *id);

#endif
