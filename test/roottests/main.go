// Roottests prints which tests of this module need root, as a pattern for go
// test's -run, so that they run once: as root, and without the others of their
// packages. Those are the tests that reach, through functions of their package,
// one that reads CUPOLA_TEST_ROOT.
package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strings"
)

func main() {
	var all []string
	for _, dir := range os.Args[1:] {
		tests, err := inDirectory(dir)
		if err != nil {
			fmt.Fprintln(os.Stderr, "roottests:", err)
			os.Exit(1)
		}
		all = append(all, tests...)
	}
	slices.Sort(all)
	fmt.Printf("^(%s)$\n", strings.Join(slices.Compact(all), "|"))
}

// inDirectory finds the tests of one package that need root.
func inDirectory(dir string) (tests []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	uses := map[string][]string{} // what a function, by its name, mentions
	var needs []string
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), dir+"/"+e.Name(), nil, 0)
		if err != nil {
			return nil, err
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil {
				names, root := mentions(f.Body)
				uses[f.Name.Name] = append(uses[f.Name.Name], names...)
				if root {
					needs = append(needs, f.Name.Name)
				}
			}
		}
	}
	for i := 0; i < len(needs); i++ { // needs grows
		for name, mentioned := range uses {
			if slices.Contains(mentioned, needs[i]) && !slices.Contains(needs, name) {
				needs = append(needs, name)
			}
		}
	}
	return slices.DeleteFunc(needs, func(name string) bool { return !strings.HasPrefix(name, "Test") || name == "TestMain" }), nil
}

// mentions are the names in a function's body. It reports whether the body reads
// CUPOLA_TEST_ROOT, or asks test/e2e for the built daemon.
func mentions(body *ast.BlockStmt) (names []string, root bool) {
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			names = append(names, n.Name)
			root = root || n.Name == "NeedBinary"
		case *ast.BasicLit:
			root = root || n.Value == `"CUPOLA_TEST_ROOT"`
		}
		return true
	})
	return names, root
}
