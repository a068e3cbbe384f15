package push

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"cupola/cmd/cupola/capi"
	"cupola/cmd/cupola/command"
)

// GitCmd is cupola git: it leads git to a daemon.
type GitCmd struct {
	Remote     remoteCmd     `cmd:"" help:"Print the address to 'git push' an app to, or add it to the repository of this directory."`
	Credential credentialCmd `cmd:"" help:"Give git the credentials for a daemon (a git credential helper)."`
}

type remoteCmd struct {
	capi.Flags
	App   string `arg:"" help:"The app's name. The first push creates it."`
	Org   string `help:"The org." default:"cupola" short:"o"`
	Space string `help:"The space." default:"dev" short:"s"`
	Add   string `help:"Add a git remote with this name, and let git ask cupola for the credentials." placeholder:"NAME"`
	SSH   bool   `name:"ssh" help:"Push over SSH, with a key that 'cupola ssh-keys add' registers."`
}

// Run prints or adds a remote.
func (c *remoteCmd) Run(e *command.Env) error {
	api, err := c.Address()
	if err != nil {
		return err
	}
	api = strings.TrimSuffix(api, "/")
	repository := fmt.Sprintf("/%s/%s/%s.git", url.PathEscape(c.Org), url.PathEscape(c.Space), url.PathEscape(c.App))
	remote, hint := api+"/git"+repository, ""
	if c.SSH {
		proxy, err := (&capi.Client{API: api, HTTP: &http.Client{}}).SSHProxy(e.Ctx)
		if err != nil {
			return err
		}
		remote = "ssh://git@" + proxy.Address + repository
		hint = fmt.Sprintf("The fingerprint of the host key, which ssh shows at the first push, is SHA256:%s\n", proxy.Fingerprint)
	}
	if err := c.find(e, api); err != nil {
		return err
	}
	if c.Add == "" {
		_, err := fmt.Fprintln(e.Out, remote)
		return err
	}
	if err := c.add(e.Ctx, api, remote); err != nil {
		return err
	}
	fmt.Fprintf(e.Out, "Added the remote %s: %s\n%sDeploy with: git push %s main\n", c.Add, remote, hint, c.Add)
	return nil
}

// find says if there is no such app yet, and fails if there is no such space. Without
// credentials at hand it does not know.
func (c *remoteCmd) find(e *command.Env, api string) error {
	client := login(e.Ctx, &c.Flags, api)
	if client == nil {
		return nil
	}
	space, err := capi.Place{Org: c.Org}.Find(e.Ctx, client, "space", "spaces", c.Space)
	if err != nil {
		return fmt.Errorf("%w: name the app's place with --org and --space (now %s and %s)", err, c.Org, c.Space)
	}
	apps, err := capi.List[struct{ GUID string }](e.Ctx, client, "/v3/apps?space_guids="+space+"&"+capi.Filter("names", c.App))
	if err == nil && len(apps) == 0 {
		fmt.Fprintf(e.Err, "There is no app %s in space %s of org %s: the first push creates it. For an app elsewhere, give --org and --space.\n", c.App, c.Space, c.Org)
	}
	return err
}

// add adds the remote, or changes its address, and sets this program as the helper for
// the credentials of the API's address alone, which a push over SSH does not need.
func (c *remoteCmd) add(ctx context.Context, api, remote string) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	dir, err := filepath.Abs(c.DataDir)
	if err != nil {
		return err
	}
	change := []string{"remote", "add", c.Add, remote}
	if exec.CommandContext(ctx, "git", "remote", "get-url", c.Add).Run() == nil { //nolint:gosec // the user's own repository
		change = []string{"remote", "set-url", c.Add, remote}
	}
	helper := fmt.Sprintf("!%s git credential --data-dir %s --api %s", quote(program), quote(dir), quote(api))
	if c.User != "admin" {
		helper += " --user " + quote(c.User)
	}
	all := [][]string{change, {"config", "credential." + api + ".helper", helper}}
	if c.SSH {
		all = all[:1]
	}
	for _, args := range all {
		if out, err := exec.CommandContext(ctx, "git", args...).CombinedOutput(); err != nil { //nolint:gosec // as above
			return fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimSpace(string(out)))
		}
	}
	return nil
}

// quote writes a word for a POSIX shell.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

type credentialCmd struct {
	capi.Flags
	Operation string `arg:"" help:"What git asks for: only get is answered."`
}

// Run answers git, as git-credential(1) describes it. It answers for the API's host
// alone.
func (c *credentialCmd) Run(e *command.Env) error {
	if c.Operation != "get" {
		return nil
	}
	api, err := c.Address()
	if err != nil {
		return err
	}
	if err := asksFor(os.Stdin, api); err != nil {
		return err
	}
	user, password, token, err := credentials(e.Ctx, &c.Flags, api)
	if err != nil {
		return fmt.Errorf("%w; or log in with cf login -a %s", err, api)
	}
	if token != "" {
		user, password = "cf", token
	}
	_, err = fmt.Fprintf(e.Out, "username=%s\npassword=%s\n", user, password)
	return err
}

// credentials are --password, or a token of the cf CLI if it targets this API, or the
// admin password of the data directory.
func credentials(ctx context.Context, f *capi.Flags, api string) (user, password, token string, err error) {
	if f.Password != "" {
		return f.User, f.Password, "", nil
	}
	if token, ok := cfToken(ctx, api); ok {
		return "", "", token, nil
	}
	password, err = f.FindPassword()
	return f.User, password, "", err
}

// login is a client with these credentials; nil if there are none, or the API does not take
// them.
func login(ctx context.Context, f *capi.Flags, api string) *capi.Client {
	user, password, token, err := credentials(ctx, f, api)
	if err == nil && token != "" {
		return &capi.Client{API: api, Token: token, HTTP: &http.Client{}}
	}
	if err != nil {
		return nil
	}
	client, err := capi.Login(ctx, api, user, password)
	if err != nil {
		return nil
	}
	return client
}

// asksFor fails unless git asks for the credentials of the API's host.
func asksFor(question io.Reader, api string) error {
	u, err := url.Parse(api)
	if err != nil {
		return err
	}
	want := map[string]string{"protocol": u.Scheme, "host": u.Host}
	named := map[string]bool{}
	lines := bufio.NewScanner(question)
	for lines.Scan() && lines.Text() != "" {
		name, value, _ := strings.Cut(lines.Text(), "=")
		if expected, ok := want[name]; ok && value != expected {
			return fmt.Errorf("git asks for the credentials of %s %s; these are for %s", name, value, api)
		}
		named[name] = true
	}
	if err := lines.Err(); err != nil {
		return err
	}
	if !named["protocol"] || !named["host"] {
		return errors.New("git names no protocol and host to give credentials for")
	}
	return nil
}

// cfToken is a token of the cf CLI's user, if the CLI is logged in to this API.
func cfToken(ctx context.Context, api string) (string, bool) {
	target, err := exec.CommandContext(ctx, "cf", "api").Output()
	if err != nil || !targets(string(target), api) {
		return "", false
	}
	out, err := exec.CommandContext(ctx, "cf", "oauth-token").Output()
	token, found := strings.CutPrefix(strings.TrimSpace(string(out)), "bearer ")
	return token, err == nil && found
}

// targets reports whether the output of cf api names an API.
func targets(output, api string) bool {
	for line := range strings.Lines(output) {
		name, value, _ := strings.Cut(line, ":")
		if strings.EqualFold(strings.TrimSpace(name), "API endpoint") {
			return strings.TrimSuffix(strings.TrimSpace(value), "/") == strings.TrimSuffix(api, "/")
		}
	}
	return false
}
