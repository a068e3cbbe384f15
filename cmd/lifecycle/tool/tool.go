// Package tool is the userland of a stack that has none; the name that the
// program is called by chooses the tool. The tools do what profile scripts and
// simple start commands need, with the options that those use. They do not
// replace a distribution's.
//
// u-root's tools, which mvdan.cc/sh offers as moreinterp/coreutils, do not
// replace these: they have 16 of them and lack options that scripts use (ls -1
// and -A, find -maxdepth, xargs -I, tar -C, cp -a, base64 -w, symbolic modes of
// chmod). Their xargs -n panics, and their rm -r removes "..", with all that is
// in addition to the current directory.
package tool

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// streams are a tool's standard descriptors.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// tool runs with the arguments after its name.
type tool func(s streams, args []string) error

// status is an error that is only an exit code; the tool has said the rest.
type status int

func (s status) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

func tools() map[string]tool {
	return map[string]tool{
		"base64": base64Tool, "basename": basename, "cat": flags("u", cat), "chmod": chmod, "cp": flags("rRapfPLvd", cp), "cut": flags("d:f:c:s", cut),
		"date": date, "dirname": dirname, "echo": echo, "env": env, "find": find, "grep": flags("ivqcnolxFEe:hHr", grep),
		"false": fail, "gunzip": gzipTool("d"), "gzip": gzipTool(""), "zcat": gzipTool("dc"), "head": head,
		"hostname": hostname, "id": flags("ugn", id), "ln": flags("sfn", ln), "ls": flags("aAldhRFprtSn1", ls),
		"md5sum": sum("md5sum", md5.New), "mkdir": flags("pm:v", mkdir), "mktemp": flags("dqup:t", mktemp), "mv": flags("fnvT", mv),
		"printenv": printenv, "readlink": flags("fen", readlink), "rm": flags("rRfvi", rm), "rmdir": flags("p", rmdir), "sed": sed, "seq": seq,
		"sha1sum": sum("sha1sum", sha1.New), "sha256sum": sum("sha256sum", sha256.New), "sha512sum": sum("sha512sum", sha512.New),
		"shasum": flags("a:cb", shasum), "sleep": sleep, "sort": flags("nru", sortLines), "tail": tail, "tar": tarTool, "tee": flags("a", tee),
		"touch": flags("camr:d:", touch), "tr": flags("d", tr), "true": succeed, "uname": flags("asnrmv", uname), "uniq": flags("c", uniq),
		"wc": flags("lwc", wc), "which": which, "whoami": whoami, "xargs": flags("0n:I:rt", xargs),
	}
}

// flags is a tool whose arguments begin with single-letter flags: see parse.
func flags(spec string, run func(s streams, o options, names []string) error) tool {
	return func(s streams, args []string) error {
		o, names, err := parse(spec, args)
		if err != nil {
			return err
		}
		return run(s, o, names)
	}
}

// Main runs the tool that argv[0] names and returns its exit code; ok is
// false when there is none.
func Main(argv []string) (exit int, ok bool) {
	t, ok := tools()[argv[0]]
	if !ok {
		return 0, false
	}
	return run(t, argv, streams{os.Stdin, os.Stdout, os.Stderr}), true
}

// Has reports whether there is a tool of that name.
func Has(name string) bool {
	_, ok := tools()[name]
	return ok
}

func run(t tool, argv []string, s streams) int {
	err := t(s, argv[1:])
	if err == nil {
		return 0
	}
	if code, ok := errors.AsType[status](err); ok {
		return int(code)
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode()
	}
	fmt.Fprintf(s.err, "%s: %v\n", argv[0], err)
	return 1
}

// each calls f with each name and goes on after an error, which it reports as
// the tool's; the exit code is then 1.
func each(s streams, tool string, names []string, f func(name string) error) error {
	if len(names) == 0 {
		return errors.New("missing operand")
	}
	var failed error
	for _, name := range names {
		if err := f(name); err != nil {
			fmt.Fprintf(s.err, "%s: %v\n", tool, err)
			failed = status(1)
		}
	}
	return failed
}
