package push

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"cupola/cmd/cupola/capi"
	"cupola/cmd/cupola/command"
)

// SSHKeysCmd is cupola ssh-keys.
type SSHKeysCmd struct {
	Add    addKeyCmd    `cmd:"" help:"Register a public key."`
	List   listKeysCmd  `cmd:"" help:"List the registered keys."`
	Remove removeKeyCmd `cmd:"" help:"Remove a key: its owner can no longer push with it."`
}

// keyFlags say whose keys are meant.
type keyFlags struct {
	capi.Flags
	Of string `help:"The user who has the key, for admins; by default the user who logs in." placeholder:"USER"`
}

// owner logs in, and finds the GUID of the user.
func (f *keyFlags) owner(ctx context.Context) (c *capi.Client, guid string, err error) {
	if c, err = f.Login(ctx); err != nil {
		return nil, "", err
	}
	name := f.Of
	if name == "" {
		name = f.User
	}
	users, err := capi.List[struct{ GUID string }](ctx, c, "/v3/users?origins=uaa&"+capi.Filter("usernames", name))
	if err == nil && len(users) == 0 {
		err = fmt.Errorf("user %s not found", name)
	}
	if err != nil {
		return nil, "", err
	}
	return c, users[0].GUID, nil
}

// sshKey is a key as the API shows it.
type sshKey struct {
	GUID, Name, Fingerprint string
	CreatedAt               time.Time  `json:"created_at"`
	LastUsedAt              *time.Time `json:"last_used_at"`
}

func keysOf(ctx context.Context, c *capi.Client, user string) ([]sshKey, error) {
	return capi.List[sshKey](ctx, c, "/v1/ssh_keys?order_by=created_at&"+capi.Filter("user_guids", user))
}

type addKeyCmd struct {
	keyFlags
	File string `arg:"" optional:"" help:"The file with the public key, or - for standard input; by default the first of ~/.ssh/id_ed25519.pub, id_ecdsa.pub, id_ed25519_sk.pub, id_ecdsa_sk.pub and id_rsa.pub." placeholder:"FILE"`
	Name string `help:"The key's name; by default its comment." placeholder:"NAME"`
}

// Run registers a key.
func (a *addKeyCmd) Run(e *command.Env) error {
	text, err := readKey(a.File, os.Stdin)
	if err != nil {
		return err
	}
	c, user, err := a.owner(e.Ctx)
	if err != nil {
		return err
	}
	var key sshKey
	request := capi.Doc{"name": a.Name, "public_key": text, "relationships": capi.Doc{"user": capi.ToOne(user)}}
	if err := c.Call(e.Ctx, http.MethodPost, "/v1/ssh_keys", request, &key); err != nil {
		return err
	}
	fmt.Fprintf(e.Out, "Added the key %s, %s\nDeploy with: cupola git remote APP --ssh --add cupola && git push cupola main\n", key.Name, key.Fingerprint)
	return nil
}

// usualKeys are the files that ssh-keygen writes.
var usualKeys = []string{"id_ed25519.pub", "id_ecdsa.pub", "id_ed25519_sk.pub", "id_ecdsa_sk.pub", "id_rsa.pub"}

// maxKeyFile bounds what is read of a file, in bytes: a key is smaller.
const maxKeyFile = 64 << 10

// readKey reads a public key: of a file, of standard input for "-", or of the first of
// the usual files for "".
func readKey(file string, in io.Reader) (string, error) {
	if file == "-" {
		text, err := io.ReadAll(io.LimitReader(in, maxKeyFile))
		return strings.TrimSpace(string(text)), err
	}
	if file == "" {
		return readUsualKey()
	}
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxKeyFile))
	return strings.TrimSpace(string(text)), err
}

func readUsualKey() (string, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return "", err
	}
	for _, name := range usualKeys {
		text, err := readKey(filepath.Join(home, ".ssh", name), nil)
		if !errors.Is(err, fs.ErrNotExist) {
			return text, err
		}
	}
	return "", fmt.Errorf("no public key in %s: create one with 'ssh-keygen -t ed25519', or name a file", filepath.Join(home, ".ssh"))
}

type listKeysCmd struct{ keyFlags }

// Run lists the keys of a user.
func (l *listKeysCmd) Run(e *command.Env) error {
	c, user, err := l.owner(e.Ctx)
	if err != nil {
		return err
	}
	all, err := keysOf(e.Ctx, c, user)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		fmt.Fprintln(e.Out, "There are no keys: add one with 'cupola ssh-keys add'")
		return nil
	}
	t := tabwriter.NewWriter(e.Out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(t, "NAME\tFINGERPRINT\tADDED\tLAST USED")
	for _, k := range all {
		used := "never"
		if k.LastUsedAt != nil {
			used = command.When(*k.LastUsedAt)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", k.Name, k.Fingerprint, command.When(k.CreatedAt), used)
	}
	return t.Flush()
}

type removeKeyCmd struct {
	keyFlags
	Key string `arg:"" help:"The key's name or fingerprint, as 'cupola ssh-keys list' prints them."`
}

// Run removes a key.
func (r *removeKeyCmd) Run(e *command.Env) error {
	c, user, err := r.owner(e.Ctx)
	if err != nil {
		return err
	}
	all, err := keysOf(e.Ctx, c, user)
	if err != nil {
		return err
	}
	for _, k := range all {
		if r.Key != k.Name && r.Key != k.Fingerprint && r.Key != k.GUID {
			continue
		}
		if err := c.Call(e.Ctx, http.MethodDelete, "/v1/ssh_keys/"+k.GUID, nil, nil); err != nil {
			return err
		}
		fmt.Fprintf(e.Out, "Removed the key %s, %s\n", k.Name, k.Fingerprint)
		return nil
	}
	return fmt.Errorf("SSH key %q not found: see 'cupola ssh-keys list'", r.Key)
}
