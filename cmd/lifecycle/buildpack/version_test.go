package buildpack

import (
	"strings"
	"testing"
)

func TestSatisfies(t *testing.T) {
	for constraint, versions := range map[string]string{ // those after the bar are refused
		"18":                   "18.0.0 18.19.1 | 19.0.0 17.9.9",
		"18.x":                 "18.19.1 | 20.0.0",
		"v18.19.1":             "18.19.1 | 18.19.2",
		"*":                    "1.0",
		"":                     "1.0",
		"latest":               "3.0",
		">=16":                 "16.0.0 20.1.0 | 15.9.9",
		">= 16.2 <19":          "16.2.0 18.9 | 16.1.9 19.0.0",
		">=16, < 19":           "16.0 | 19.0",
		"^18.2.0":              "18.2.0 18.9.9 | 18.1.9 19.0.0",
		"^0.2.3":               "0.2.9 | 0.3.0 0.2.2",
		"^7.4 || ^8.0":         "7.4.3 8.2.30 | 9.0.0 7.3.9",
		"^7.4|^8.0":            "7.4.3 8.2.30 | 9.0.0",
		"~1.2.3":               "1.2.9 | 1.3.0 1.2.2",
		"~18":                  "18.9.9 | 19.0.0",
		"~> 3.1":               "3.1.2 3.9.0 | 3.0.9 4.0.0",
		"~> 3.1.2":             "3.1.2 3.1.9 | 3.2.0 3.1.1",
		"1.22.*":               "1.22.1 | 1.23.0",
		"3.11.+":               "3.11.2 | 3.12.0",
		"16 - 18":              "16.0 18.5.1 | 15.9 19.0",
		"!= 3.1.0":             "3.1.1 | 3.1.0",
		">3.0":                 "3.1.0 | 3.0.9 2.0",
		"<=3.1":                "3.1.9 3.0 | 3.2.0",
		"== 3.11.2":            "3.11.2 | 3.11.3",
		"nonsense":             "| 1.0",
		">= 3.0.0p0, != 3.2.1": "3.2.2 | 3.2.1",
	} {
		good, bad, _ := strings.Cut(versions, "|")
		for v := range strings.FieldsSeq(good) {
			if !satisfies(v, constraint) {
				t.Errorf("%s does not satisfy %q", v, constraint)
			}
		}
		for v := range strings.FieldsSeq(bad) {
			if satisfies(v, constraint) {
				t.Errorf("%s satisfies %q", v, constraint)
			}
		}
	}
	if satisfies("unknown", "*") {
		t.Error("a version without a number satisfies")
	}
}
