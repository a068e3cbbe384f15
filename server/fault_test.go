package server

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// unguarded are rooms whose goroutines may end their process: it is not the
// daemon.
var unguarded = []string{
	"cmd", "bench", "test", // commands, and what runs in containers
	"server/doctor",              // run by the command
	"server/kube",                // likewise
	"runtime/fault",              // where goroutines begin
	"runtime/container/testdata", // programs
	"runtime/egress/egresstest",  // targets for tests
}

// TestGoroutinesAreFaultBoundaries holds the daemon's goroutines to begin in
// package fault: a panic that none recovers would end the daemon.
func TestGoroutinesAreFaultBoundaries(t *testing.T) {
	files := 0
	for _, p := range packages(t) {
		if slices.ContainsFunc(unguarded, func(room string) bool { return within(p.ImportPath, room) }) {
			continue
		}
		paths, err := filepath.Glob(filepath.Join(p.Dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			files++
			for _, at := range bareGoroutines(t, path, nil) {
				t.Errorf("%s: begin it by fault.Go, fault.Func, fault.ErrFunc or fault.Loop, so that its panic does not end the daemon", at)
			}
		}
	}
	if files < 200 {
		t.Errorf("looked at %d files; want the daemon's", files)
	}
}

func TestBareGoroutinesAreFound(t *testing.T) {
	const source = `package p
func f() {
	go work()
	go func() {}()
	group.Go(work)
	group.Go(func() error { return nil })
	time.AfterFunc(1, func() { a(); b() })
	fault.Go("p", work)
	group.Go(fault.Func("p", work))
	group.Go(fault.Loop(ctx, "p", work))
	context.AfterFunc(ctx, func() { c.Close() })
}`
	if got := bareGoroutines(t, "p.go", source); len(got) != 5 {
		t.Errorf("got %v; want the first five", got)
	}
}

// bareGoroutines are where a file begins goroutines itself, or has a group or a
// timer call what is not guarded. A timer's call of one function is left alone.
func bareGoroutines(t *testing.T, path string, source any) (found []string) {
	t.Helper()
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, source, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			found = append(found, fmt.Sprint(set.Position(n.Pos())))
		case *ast.CallExpr:
			if startsBare(n) {
				found = append(found, fmt.Sprint(set.Position(n.Pos())))
			}
		}
		return true
	})
	return found
}

func startsBare(call *ast.CallExpr) bool {
	name, of := selected(call.Fun)
	if len(call.Args) == 0 || isFault(of) {
		return false
	}
	last := call.Args[len(call.Args)-1]
	if inner, ok := last.(*ast.CallExpr); ok {
		if _, of := selected(inner.Fun); isFault(of) {
			return false
		}
	}
	literal, isLiteral := last.(*ast.FuncLit)
	return name == "Go" && len(call.Args) == 1 || name == "AfterFunc" && isLiteral && len(literal.Body.List) > 1
}

// selected is the name of what is called, and of the package or variable it is
// called of.
func selected(f ast.Expr) (name, of string) {
	s, ok := f.(*ast.SelectorExpr)
	if !ok {
		return "", ""
	}
	if x, ok := s.X.(*ast.Ident); ok {
		of = x.Name
	}
	return s.Sel.Name, of
}

// isFault tells package fault, which some packages call guard.
func isFault(of string) bool { return of == "fault" || of == "guard" }
