package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// markReplacements marks the commands by which the process may be replaced:
// `exec program`, and the last simple command of the script. A script that
// sets traps or leaves work in the background has none, since both need the
// interpreter to live on.
func markReplacements(file *syntax.File) {
	if needsInterpreter(file) {
		return
	}
	for _, stmt := range file.Stmts {
		markExecs(stmt)
	}
	if n := len(file.Stmts); n > 0 {
		markLast(file.Stmts[n-1])
	}
}

func needsInterpreter(file *syntax.File) bool {
	found := false
	syntax.Walk(file, func(node syntax.Node) bool {
		switch n := node.(type) {
		case *syntax.Stmt:
			found = found || n.Background || n.Coprocess
		case *syntax.CallExpr:
			found = found || literal(n) == "trap"
		}
		return !found
	})
	return found
}

// markExecs marks the exec commands that run in the main shell.
func markExecs(stmt *syntax.Stmt) {
	syntax.Walk(stmt, func(node syntax.Node) bool {
		switch n := node.(type) {
		case *syntax.Subshell, *syntax.CmdSubst, *syntax.ProcSubst, *syntax.FuncDecl:
			return false
		case *syntax.BinaryCmd:
			return n.Op != syntax.Pipe && n.Op != syntax.PipeAll
		case *syntax.CallExpr:
			markExec(n)
		}
		return true
	})
}

// markExec turns `exec program …` into the mark; `exec` with options or with
// redirections alone stays the builtin.
func markExec(call *syntax.CallExpr) {
	if literal(call) == "exec" && len(call.Args) > 1 && !strings.HasPrefix(call.Args[1].Lit(), "-") {
		call.Args[0] = word(execMark)
	}
}

// markLast marks the command that ends a list, following && and || and
// braces: what it returns is what the script returns.
func markLast(stmt *syntax.Stmt) {
	if stmt.Negated {
		return
	}
	switch cmd := stmt.Cmd.(type) {
	case *syntax.CallExpr:
		if len(cmd.Args) > 0 && literal(cmd) != "exec" && literal(cmd) != execMark {
			cmd.Args = append([]*syntax.Word{word(becomeMark)}, cmd.Args...)
		}
	case *syntax.BinaryCmd:
		if cmd.Op == syntax.AndStmt || cmd.Op == syntax.OrStmt {
			markLast(cmd.Y)
		}
	case *syntax.Block:
		if n := len(cmd.Stmts); n > 0 && len(stmt.Redirs) == 0 {
			markLast(cmd.Stmts[n-1])
		}
	}
}

// literal is the name a call starts with, empty when it must be expanded.
func literal(call *syntax.CallExpr) string {
	if len(call.Args) == 0 {
		return ""
	}
	return call.Args[0].Lit()
}

func word(s string) *syntax.Word {
	return &syntax.Word{Parts: []syntax.WordPart{&syntax.Lit{Value: s}}}
}
