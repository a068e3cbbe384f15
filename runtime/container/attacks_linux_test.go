package container

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var cveNumber = regexp.MustCompile(`(?i)cve-\d{4}-\d{4,}`)

// TestKnownAttacks holds that each row of known attacks in docs/security.md names tests that have that number, in
// themselves or in the cases and checks that they use, and that each number in their packages has its row.
func TestKnownAttacks(t *testing.T) {
	tests, named := map[string][]string{}, map[string]string{} // numbers by test, and where a number is
	for _, dir := range []string{".", "../cell", "../../rootfs", "../../rootfs/registry", "../../rootfs/unpack"} {
		decls := declarationsOf(t, dir)
		for name := range decls {
			if strings.HasPrefix(name, "Test") { // one name may be in two packages
				tests[name] = append(tests[name], numbersOf(decls, name, map[string]bool{})...)
			}
		}
		files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: got %v, %v", dir, files, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, cve := range cveNumber.FindAllString(string(text), -1) {
				named[strings.ToUpper(cve)] = file
			}
		}
	}
	rows := attackRows(t)
	for cve, of := range rows {
		for _, test := range of {
			if !slices.Contains(tests[test], cve) {
				t.Errorf("docs/security.md: neither %q nor what it uses names %s", test, cve)
			}
		}
	}
	for _, cve := range slices.Sorted(maps.Keys(named)) {
		if rows[cve] == nil {
			t.Errorf("docs/security.md has no row of %s, which %s names", cve, named[cve])
		}
	}
}

// attackRows are the tests that docs/security.md names, by number.
func attackRows(t *testing.T) map[string][]string {
	t.Helper()
	doc, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string][]string{}
	for line := range strings.Lines(string(doc)) {
		if cells := strings.Split(line, "|"); len(cells) == 5 && cveNumber.MatchString(cells[1]) {
			rows[strings.TrimSpace(cells[1])] = strings.Split(strings.TrimSpace(cells[3]), ", ")
		}
	}
	return rows
}

// declaration is a function, method or variable of a package's tests.
type declaration struct {
	text string // with its comment
	uses []string
}

func declarationsOf(t *testing.T, dir string) map[string]declaration {
	t.Helper()
	all := map[string]declaration{}
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		set := token.NewFileSet()
		parsed, err := parser.ParseFile(set, file, source, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range parsed.Decls {
			d := declaration{text: string(source[set.Position(decl.Pos()).Offset:set.Position(decl.End()).Offset])}
			ast.Inspect(decl, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok {
					d.uses = append(d.uses, id.Name)
				}
				return true
			})
			for name, comment := range declared(decl) {
				all[name] = declaration{all[name].text + comment + d.text, append(all[name].uses, d.uses...)}
			}
		}
	}
	return all
}

// declared are the names that a declaration makes, with its comment.
func declared(decl ast.Decl) map[string]string {
	names := map[string]string{}
	switch d := decl.(type) {
	case *ast.FuncDecl:
		names[d.Name.Name] = d.Doc.Text()
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			if v, ok := spec.(*ast.ValueSpec); ok {
				for _, name := range v.Names {
					names[name.Name] = d.Doc.Text()
				}
			}
		}
	}
	return names
}

// numbersOf are the numbers in a declaration and in those that it uses, other tests left out.
func numbersOf(decls map[string]declaration, name string, seen map[string]bool) []string {
	d, ok := decls[name]
	if !ok || seen[name] {
		return nil
	}
	seen[name] = true
	var all []string
	for _, cve := range cveNumber.FindAllString(d.text, -1) {
		all = append(all, strings.ToUpper(cve))
	}
	for _, used := range d.uses {
		if !strings.HasPrefix(used, "Test") {
			all = append(all, numbersOf(decls, used, seen)...)
		}
	}
	return all
}
