package container

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestKnownAttacks holds that each row of known attacks in docs/security.md names tests whose files have that number, and
// that each number in these files has its row.
func TestKnownAttacks(t *testing.T) {
	number := regexp.MustCompile(`(?i)cve-\d{4}-\d{4,}`)
	tests, named := map[string]string{}, map[string]string{} // files of tests, and where a number is
	for _, dir := range []string{".", "../cell", "../../rootfs", "../../rootfs/unpack"} {
		files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: got %v, %v", dir, files, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range regexp.MustCompile(`(?m)^func (Test\w+)`).FindAllStringSubmatch(string(text), -1) {
				tests[f[1]] += strings.ToUpper(string(text)) // a name may be in two packages
			}
			for _, cve := range number.FindAllString(string(text), -1) {
				named[strings.ToUpper(cve)] = file
			}
		}
	}
	doc, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]bool{}
	for line := range strings.Lines(string(doc)) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 || !number.MatchString(cells[1]) {
			continue
		}
		cve := strings.TrimSpace(cells[1])
		rows[cve] = true
		for test := range strings.SplitSeq(strings.TrimSpace(cells[3]), ", ") {
			if !strings.Contains(tests[test], cve) {
				t.Errorf("docs/security.md: %s is not in the file of %q", cve, test)
			}
		}
	}
	for _, cve := range slices.Sorted(maps.Keys(named)) {
		if !rows[cve] {
			t.Errorf("docs/security.md has no row of %s, which %s names", cve, named[cve])
		}
	}
}
