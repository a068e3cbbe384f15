package script

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"cupola/server/osb/osbtest"
	"cupola/test/e2e"
	"cupola/test/loopback"
)

// TestScripts runs testdata: each file takes the API, and where the
// official CLI is installed that as well, through what one row of its commands
// does. They share a daemon; each has its own org with a space.
//
// Beside testscript's commands there are those of scriptCommands. These
// variables are set: ORG, ORG_GUID, SPACE, SPACE_GUID, API (base URL), ADDR
// (host:port), ADMIN_PASSWORD, PLUGIN (a program that is a plugin of the CLI), FREE_PORT
// (of this machine, the same one for all scripts). The CLI's questions are answered by a file: "stdin FILE" before "exec cf …".
func TestScripts(t *testing.T) {
	t.Parallel()
	d := e2e.StartDaemon(t, e2e.NeedBinary(t))
	o := newOutside(t)
	port := strconv.Itoa(loopback.FreePorts(t, 1)[0])
	cmds := map[string]func(*testscript.TestScript, bool, []string){}
	for name, c := range scriptCommands() {
		cmds[name] = c.run
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		Cmds:                cmds,
		RequireUniqueNames:  true,
		RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("FREE_PORT", port)
			return setUpScript(e, d, o)
		},
		Condition: scriptCondition,
	})
}

// scriptCondition knows [cf], whether the official CLI is installed, and [cf:COMMAND],
// whether its version has a command.
func scriptCondition(name string) (bool, error) {
	first, command, _ := strings.Cut(name, ":")
	if first != "cf" {
		return false, fmt.Errorf("unknown condition %q", name)
	}
	out, err := exec.Command("cf", "version").Output()
	if err != nil || !strings.HasPrefix(string(out), "cf version ") {
		return false, nil
	}
	return command == "" || exec.Command("cf", "help", command).Run() == nil, nil
}

// session is the state of one script.
type session struct {
	d       *e2e.Daemon
	outside *outside // where serve serves
	client  *e2e.Client
	dir     string
	env     []string // of the CLI
	job     string   // URL of the last job that an answer named
	last    any      // JSON of the last answer
	printed outcome  // the last answer
	broker  *osbtest.Broker
}

type sessionKey struct{}

func setUpScript(e *testscript.Env, d *e2e.Daemon, o *outside) error {
	ctx := context.Background()
	c, err := e2e.Login(ctx, "http://"+d.Addr, "admin", e2e.AdminPassword)
	if err != nil {
		return err
	}
	org := "o-" + strconv.FormatInt(time.Now().UnixNano(), 36)
	var made struct{ GUID string }
	if err := c.Call(ctx, "POST", "/v3/organizations", e2e.Doc{"name": org}, &made); err != nil {
		return err
	}
	e.Setenv("ORG", org)
	e.Setenv("ORG_GUID", made.GUID)
	space := e2e.Doc{"name": "dev", "relationships": e2e.Doc{"organization": e2e.Doc{"data": e2e.Doc{"guid": made.GUID}}}}
	if err := c.Call(ctx, "POST", "/v3/spaces", space, &made); err != nil {
		return err
	}
	e.Setenv("SPACE", "dev")
	e.Setenv("SPACE_GUID", made.GUID)
	e.Setenv("API", c.API)
	e.Setenv("ADDR", d.Addr)
	e.Setenv("PORT", d.Addr[strings.LastIndex(d.Addr, ":")+1:])
	e.Setenv("ADMIN_PASSWORD", e2e.AdminPassword)
	program, err := os.Executable()
	e.Setenv("PLUGIN", program)
	cli := []string{"CF_HOME=" + e.WorkDir, "CF_COLOR=false", "CF_TRACE=false"}
	e.Vars = append(e.Vars, cli...)
	e.Values[sessionKey{}] = &session{d: d, outside: o, client: c, dir: e.WorkDir, env: append(os.Environ(), cli...)}
	return err
}

// outcome is what a command printed, and how it ended.
type outcome struct {
	stdout, stderr string
	err            error
}

// command is one that scripts can use.
type command func(*testscript.TestScript, *session, []string) outcome

func (c command) run(ts *testscript.TestScript, neg bool, args []string) {
	out := c(ts, ts.Value(sessionKey{}).(*session), args)
	fmt.Fprint(ts.Stdout(), out.stdout)
	fmt.Fprint(ts.Stderr(), out.stderr)
	switch {
	case out.err != nil && !neg:
		ts.Fatalf("%v\n%s%s", out.err, out.stdout, out.stderr)
	case out.err == nil && neg:
		ts.Fatalf("unexpected success")
	}
}

// scriptCommands are the commands that scripts have beside testscript's own.
func scriptCommands() map[string]command {
	all := map[string]command{
		"api":      callAPI,
		"as":       logInAs,
		"job":      waitForJob,
		"let":      setVariable,
		"guid":     setGUID,
		"upload":   uploadFile,
		"download": downloadFile,
		"zip":      zipDirectory,
		"push":     pushDirectory,
		"get":      getPage,
		"at":       getAtPort,
		"logs":     printLogs,
		"serve":    serveDirectory,
		"host":     hostDirectory,
		"stage":    stageApp,
		"broker":   commandBroker,
		"cf":       runCLI,
		"cf-until": runCLIUntil,
		"cf-login": logInCLI,
	}
	all["eventually"] = func(ts *testscript.TestScript, s *session, args []string) outcome {
		return untilItMatches(all, ts, s, args)
	}
	return all
}

// eventually SECONDS REGEXP COMMAND…: runs a command until it succeeds and
// what it prints matches. "!REGEXP" is until it does not match.
func untilItMatches(all map[string]command, ts *testscript.TestScript, s *session, args []string) outcome {
	if len(args) < 3 || all[args[2]] == nil {
		ts.Fatalf("usage: eventually SECONDS REGEXP COMMAND…")
	}
	seconds, err := strconv.Atoi(args[0])
	ts.Check(err)
	pattern, unwanted := strings.CutPrefix(args[1], "!")
	want, err := regexp.Compile("(?m)" + pattern)
	ts.Check(err)
	deadline := time.Now().Add(time.Duration(seconds) * time.Second)
	for {
		out := all[args[2]](ts, s, args[3:])
		if out.err == nil && want.MatchString(out.stdout+out.stderr) != unwanted {
			return out
		}
		if time.Now().After(deadline) {
			out.err = fmt.Errorf("after %d s: no match of %q: %v", seconds, args[1], out.err)
			return out
		}
		<-time.After(100 * time.Millisecond)
	}
}

// let NAME path.in.the.last.answer: sets a variable; a list is indexed by
// number. stdout is the answer again.
func setVariable(ts *testscript.TestScript, s *session, args []string) outcome {
	if len(args) != 2 {
		ts.Fatalf("usage: let NAME path.in.the.last.answer")
	}
	at := s.last
	for step := range strings.SplitSeq(args[1], ".") {
		switch v := at.(type) {
		case map[string]any:
			at = v[step]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i >= len(v) {
				ts.Fatalf("there is no %s in %s: the list has %d items", step, args[1], len(v))
			}
			at = v[i]
		default:
			ts.Fatalf("there is nothing at %s of %s: %v", step, args[1], s.last)
		}
	}
	text, ok := at.(string)
	if !ok {
		b, err := json.Marshal(at)
		ts.Check(err)
		text = string(b)
	}
	ts.Setenv(args[0], text)
	return s.printed
}

// runCLI runs the official CLI: cf ARGUMENT…
func runCLI(ts *testscript.TestScript, s *session, args []string) outcome {
	ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "cf", args...)
	cmd.Dir, cmd.Env = ts.MkAbs("."), append(slices.Clone(s.env), "CF_HOME="+ts.Getenv("CF_HOME"))
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if err != nil {
		err = fmt.Errorf("cf %s: %v", strings.Join(args, " "), err)
	}
	return outcome{stdout.String(), stderr.String(), err}
}

// runCLIUntil runs the official CLI until it has printed what matches, and ends
// it: cf-until REGEXP ARGUMENT…
func runCLIUntil(ts *testscript.TestScript, s *session, args []string) outcome {
	if len(args) < 2 {
		ts.Fatalf("usage: cf-until REGEXP ARGUMENT…")
	}
	want, err := regexp.Compile("(?m)" + args[0])
	ts.Check(err)
	cmd := exec.Command("cf", args[1:]...)
	var out e2e.LogBuffer
	cmd.Env, cmd.Stdout, cmd.Stderr = s.env, &out, &out
	ts.Check(cmd.Start())
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	for deadline := time.Now().Add(30 * time.Second); !want.MatchString(out.String()); <-time.After(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			return outcome{stdout: out.String(), err: fmt.Errorf("after 30 s: no match of %q", args[0])}
		}
	}
	return outcome{stdout: out.String()}
}

// logInCLI logs the CLI in as admin, and targets the script's space.
func logInCLI(ts *testscript.TestScript, s *session, _ []string) outcome {
	for _, args := range [][]string{
		{"api", ts.Getenv("API")},
		{"auth", "admin", e2e.AdminPassword},
		{"target", "-o", ts.Getenv("ORG"), "-s", ts.Getenv("SPACE")},
	} {
		if out := runCLI(ts, s, args); out.err != nil {
			return out
		}
	}
	return outcome{}
}
