package buildpack

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"cupola/runtime/contract"
)

// noToolError says that the stack lacks a program and how to go on.
type noToolError struct {
	tool      string
	toolchain string // that brings it, of contract.Toolchains
	stack     string // its name; "" is not known
	instead   string // what the user can do without it; "" is nothing
}

func (e noToolError) Error() string {
	text := fmt.Sprintf("no %s in %s: push with -s and a stack that has it (see cf stacks; host has what this machine has)", e.tool, quoteStack(e.stack))
	if t, ok := contract.ToolchainOf(e.toolchain); ok {
		text += ", or get it: " + t.HowToGet(e.stack)
	}
	if e.instead != "" {
		text += ", or " + e.instead
	}
	return text
}

// lackOf is the error of a stack without a toolchain.
func lackOf(toolchain string) noToolError {
	return noToolError{tool: toolchain, toolchain: toolchain, stack: os.Getenv(contract.EnvStack)}
}

// about is the same error for another program of the toolchain.
func (e noToolError) about(tool string) noToolError {
	e.tool = tool
	return e
}

// stackName names the stack of this staging in a sentence.
func stackName() string { return quoteStack(os.Getenv(contract.EnvStack)) }

func quoteStack(name string) string {
	if name == "" {
		return "this stack"
	}
	return "stack '" + name + "'"
}

// find returns the path of the first of names that is in PATH or in dirs. The error says how to get the toolchain, and with instead
// what the user can do without it, unless that is empty.
func (s *stage) find(toolchain, instead string, names []string, dirs ...string) (string, error) {
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return filepath.Abs(path)
		}
	}
	for _, dir := range dirs {
		for _, name := range names {
			matches, _ := filepath.Glob(filepath.Join(dir, name))
			for _, path := range matches {
				if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
					return path, nil
				}
			}
		}
	}
	lack := lackOf(toolchain).about(names[0])
	lack.instead = instead
	return "", lack
}

// call is a program to run.
type call struct {
	argv []string
	dir  string   // empty is the app's
	env  []string // added to the environment
}

func (s *stage) command(c call) *exec.Cmd {
	// A staging that is given up ends with its container.
	cmd := exec.CommandContext(context.Background(), c.argv[0], c.argv[1:]...)
	cmd.Dir = c.dir
	if cmd.Dir == "" {
		cmd.Dir = s.app
	}
	cmd.Env = append(os.Environ(), c.env...)
	return cmd
}

// run runs a program, its output indented in the log.
func (s *stage) run(c call) error {
	cmd := s.command(c)
	w := &indenter{w: s.log}
	cmd.Stdout, cmd.Stderr = w, w
	err := cmd.Run()
	w.flush()
	if err != nil {
		return fmt.Errorf("%s: %w", strings.Join(append([]string{filepath.Base(c.argv[0])}, c.argv[1:]...), " "), err)
	}
	return nil
}

// output runs a program and returns what it prints, trimmed.
func (s *stage) output(c call) (string, error) {
	cmd := s.command(c)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", filepath.Base(c.argv[0]), err, strings.TrimSpace(errs.String()))
	}
	return strings.TrimSpace(string(out)), nil
}

// indenter puts a buildpack's indentation before each line.
type indenter struct {
	w    io.Writer
	line []byte
}

func (i *indenter) Write(p []byte) (int, error) {
	i.line = append(i.line, p...)
	for {
		end := bytes.IndexByte(i.line, '\n')
		if end < 0 {
			return len(p), nil
		}
		if _, err := fmt.Fprintf(i.w, "       %s\n", i.line[:end]); err != nil {
			return 0, err
		}
		i.line = i.line[end+1:]
	}
}

func (i *indenter) flush() {
	if len(i.line) > 0 {
		_, _ = i.Write([]byte("\n"))
	}
}

// atRuntime is a path in this buildpack's dependency directory as the running
// app sees it.
func (s *stage) atRuntime(name string) string {
	return "$DEPS_DIR/" + s.index + "/" + name
}

// isEmptyDirectory reports whether dir has no entries, also when it is none.
func isEmptyDirectory(dir string) bool {
	entries, err := os.ReadDir(dir)
	return err != nil || len(entries) == 0
}
