/* TC_CASE(RH01) at the top of a test marks that the test asserts row RH01 of test/cases.md. TC_CASE appends the id to
 * the file $TC_CASE_DIR/<program>; scripts/case-table prints the rows of these files. Without the variable TC_CASE does
 * nothing, and a failure to write is ignored. */
#ifndef TC_SUPPORT_CASE_H
#define TC_SUPPORT_CASE_H

#define TC_CASE(id) tc_case_record(#id)

void tc_case_record(const char *id);

#endif
