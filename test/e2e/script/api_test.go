package script

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"cupola/test/e2e"
)

// callAPI makes a call as the script's user: api METHOD PATH [JSON|@FILE].
// Variables in the JSON are replaced. A FILE that ends in .yml is a manifest.
// The body goes to stdout, the status and the headers to stderr; statuses from
// 400 are failures.
func callAPI(ts *testscript.TestScript, s *session, args []string) outcome {
	if len(args) < 2 || len(args) > 3 {
		ts.Fatalf("usage: api METHOD PATH [JSON|@FILE]")
	}
	kind, body := "", ""
	if len(args) == 3 {
		kind, body = "application/json", args[2]
		if file, ok := strings.CutPrefix(body, "@"); ok {
			body = ts.ReadFile(file)
			if strings.HasSuffix(file, ".yml") {
				kind = "application/x-yaml"
			}
		} else {
			body = expandKnown(ts, body)
		}
	}
	return s.exchange(args[0], args[1], kind, strings.NewReader(body))
}

// expandKnown replaces the variables that are set, and leaves the others.
func expandKnown(ts *testscript.TestScript, text string) string {
	return os.Expand(text, func(name string) string {
		if v := ts.Getenv(name); v != "" {
			return v
		}
		return "$" + name
	})
}

func (s *session) exchange(method, path, kind string, body io.Reader) outcome {
	req, err := http.NewRequest(method, s.client.URL(path), body)
	if err != nil {
		return outcome{err: err}
	}
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	req.Header.Set("User-Agent", e2e.UserAgent)
	if s.client.Token != "" {
		req.Header.Set("Authorization", "bearer "+s.client.Token)
	}
	res, err := s.client.HTTP.Do(req)
	if err != nil {
		return outcome{err: err}
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return outcome{err: err}
	}
	return s.note(res, text)
}

// note remembers an answer, and prints it.
func (s *session) note(res *http.Response, text []byte) outcome {
	var header bytes.Buffer
	fmt.Fprintf(&header, "%s %s\n", res.Proto, res.Status)
	_ = res.Header.Write(&header)
	if at := res.Header.Get("Location"); strings.Contains(at, "/v3/jobs/") {
		s.job = at
	}
	s.last = nil
	var pretty bytes.Buffer
	if json.Unmarshal(text, &s.last) == nil && json.Indent(&pretty, text, "", "  ") == nil {
		text = append(pretty.Bytes(), '\n')
	}
	out := outcome{stdout: string(text), stderr: header.String()}
	s.printed = out
	if res.StatusCode >= 400 {
		out.err = errors.New(res.Status)
	}
	return out
}

// logInAs makes the calls that follow as another user: as USER PASSWORD; "as -" is
// without a token.
func logInAs(ts *testscript.TestScript, s *session, args []string) outcome {
	switch {
	case len(args) == 1 && args[0] == "-":
		anonymous := *s.client
		anonymous.Token = ""
		s.client = &anonymous
		return outcome{}
	case len(args) != 2:
		ts.Fatalf("usage: as USER PASSWORD")
	}
	c, err := e2e.Login(context.Background(), s.client.API, args[0], args[1])
	if err != nil {
		return outcome{err: err}
	}
	s.client = c
	return outcome{}
}

// waitForJob waits for the job that the last answer with one named.
func waitForJob(ts *testscript.TestScript, s *session, _ []string) outcome {
	if s.job == "" {
		ts.Fatalf("no answer named a job")
	}
	err := s.client.Job(context.Background(), s.job)
	if err != nil {
		return outcome{stdout: err.Error() + "\n", err: err}
	}
	return outcome{}
}

// setGUID looks a name up: guid VARIABLE KIND NAME. Apps are looked for in the
// script's space only.
func setGUID(ts *testscript.TestScript, s *session, args []string) outcome {
	if len(args) != 3 {
		ts.Fatalf("usage: guid VARIABLE KIND NAME")
	}
	key := "names"
	switch args[1] {
	case "routes":
		key = "hosts"
	case "users":
		key = "usernames"
	}
	q := url.Values{key: {args[2]}}
	switch args[1] {
	case "apps", "routes", "service_instances": // other scripts have some of this name in their spaces
		q.Set("space_guids", ts.Getenv("SPACE_GUID"))
	}
	out := s.exchange("GET", "/v3/"+args[1]+"?"+q.Encode(), "", nil)
	if out.err != nil {
		return out
	}
	return setVariable(ts, s, []string{args[0], "resources.0.guid"})
}

// uploadFile sends a file as the CLI does: upload PATH FILE [RESOURCES].
func uploadFile(ts *testscript.TestScript, s *session, args []string) outcome {
	if len(args) < 2 || len(args) > 3 {
		ts.Fatalf("usage: upload PATH FILE [RESOURCES]")
	}
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	if len(args) == 3 {
		ts.Check(form.WriteField("resources", args[2]))
	}
	part, err := form.CreateFormFile("bits", filepath.Base(args[1]))
	ts.Check(err)
	_, err = io.WriteString(part, ts.ReadFile(args[1]))
	ts.Check(err)
	ts.Check(form.Close())
	return s.exchange("POST", args[0], form.FormDataContentType(), &body)
}

// downloadFile keeps an answer as a file: download PATH FILE.
func downloadFile(ts *testscript.TestScript, s *session, args []string) outcome {
	if len(args) != 2 {
		ts.Fatalf("usage: download PATH FILE")
	}
	out := s.exchange("GET", args[0], "", nil)
	if out.err == nil {
		out.err = os.WriteFile(ts.MkAbs(args[1]), []byte(out.stdout), 0o644)
		out.stdout = ""
	}
	return out
}

// zipDirectory makes a zip of a directory: zip FILE DIR.
func zipDirectory(ts *testscript.TestScript, _ *session, args []string) outcome {
	if len(args) != 2 {
		ts.Fatalf("usage: zip FILE DIR")
	}
	f, err := os.Create(ts.MkAbs(args[0]))
	ts.Check(err)
	defer f.Close()
	w := zip.NewWriter(f)
	ts.Check(w.AddFS(os.DirFS(ts.MkAbs(args[1]))))
	return outcome{err: w.Close()}
}

// pushDirectory pushes with cupola's own client: push DIR [FLAG…].
func pushDirectory(ts *testscript.TestScript, s *session, args []string) outcome {
	if len(args) == 0 {
		ts.Fatalf("usage: push DIR [FLAG…]")
	}
	args = append([]string{"push", "-o", ts.Getenv("ORG"), "-s", ts.Getenv("SPACE")}, args...)
	args[5] = ts.MkAbs(args[5])
	out, err := s.d.Run(args...)
	return outcome{stdout: out, err: err}
}

// getPage asks an app through the router: get HOST PATH. stdout has the status
// in the first line, then the body.
func getPage(ts *testscript.TestScript, s *session, args []string) outcome {
	if len(args) != 2 {
		ts.Fatalf("usage: get HOST PATH")
	}
	status, body, err := s.d.Get(args[0], args[1])
	return outcome{stdout: fmt.Sprintf("%d\n%s", status, body), err: err}
}

// getAtPort asks an app by its TCP route: at PORT. That nothing answers is
// printed, and no failure.
func getAtPort(ts *testscript.TestScript, _ *session, args []string) outcome {
	if len(args) != 1 {
		ts.Fatalf("usage: at PORT")
	}
	res, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Get("http://127.0.0.1:" + args[0] + "/")
	if err != nil {
		return outcome{stdout: err.Error()}
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return outcome{stdout: fmt.Sprintf("%d\n%s", res.StatusCode, body), err: err}
}
