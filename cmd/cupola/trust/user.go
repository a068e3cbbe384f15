package trust

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// account is a user of this machine.
type account struct {
	home     string
	uid, gid uint32
}

// callingUser is the user who called sudo, else this one.
func callingUser() account {
	name := os.Getenv("SUDO_USER")
	u, err := user.Lookup(name)
	if name == "" || err != nil {
		home, _ := os.UserHomeDir()
		return account{home, uint32(os.Getuid()), uint32(os.Getgid())}
	}
	uid, _ := strconv.ParseUint(u.Uid, 10, 32)
	gid, _ := strconv.ParseUint(u.Gid, 10, 32)
	return account{u.HomeDir, uint32(uid), uint32(gid)}
}

// databases are where browsers have NSS databases, below a home.
var databases = []string{".pki/nssdb", "snap/chromium/current/.pki/nssdb", ".mozilla/firefox/*", "snap/firefox/common/.mozilla/firefox/*",
	".var/app/org.mozilla.firefox/.mozilla/firefox/*", ".config/mozilla/firefox/*"}

// userStore is an NSS database.
type userStore struct {
	dir string
	account
}

// userStores returns the databases of a user's browsers.
func userStores(a account) (found []store) {
	if a.home == "" {
		return nil
	}
	for _, pattern := range databases {
		names, _ := filepath.Glob(filepath.Join(a.home, pattern, "cert9.db"))
		for _, name := range names {
			found = append(found, userStore{filepath.Dir(name), a})
		}
	}
	return found
}

// String is the directory of the database.
func (s userStore) String() string { return "the browser's database " + s.dir }

// certutil is a run of certutil on the database, by its owner.
func (s userStore) certutil(args ...string) program {
	return program{path: "certutil", args: append([]string{"-d", "sql:" + s.dir}, args...), as: &s.account}
}

// errNoCertutil says that NSS's program is not there.
var errNoCertutil = errors.New("no certutil: install the package libnss3-tools (nss-tools, nss)")

// has returns the certificate of a name; nil if there is none.
func (s userStore) has(name string, run runner) ([]byte, error) {
	out, err := run(s.certutil("-L", "-n", name, "-a"))
	if errors.Is(err, exec.ErrNotFound) {
		return nil, errNoCertutil
	}
	if err != nil {
		return nil, nil // certutil fails if there is none
	}
	return out, nil
}

func (s userStore) add(ca authorityCert, run runner) (changed bool, err error) {
	is, err := s.has(ca.name, run)
	if err != nil {
		return false, err
	}
	if is != nil {
		if bytes.Equal(plain(is), plain(ca.pem)) {
			return false, nil
		}
		if _, err := s.remove(ca, run); err != nil {
			return false, err
		}
	}
	p := s.certutil("-A", "-t", "C,,", "-n", ca.name, "-a")
	p.input = ca.pem
	if out, err := run(p); err != nil {
		return false, fmt.Errorf("certutil: %w: %s", err, bytes.TrimSpace(out))
	}
	return true, nil
}

func (s userStore) remove(ca authorityCert, run runner) (changed bool, err error) {
	is, err := s.has(ca.name, run)
	if is == nil || err != nil {
		return false, err
	}
	if out, err := run(s.certutil("-D", "-n", ca.name)); err != nil {
		return false, fmt.Errorf("certutil: %w: %s", err, bytes.TrimSpace(out))
	}
	return true, nil
}

// plain is PEM without the ends of its lines, which programs write differently.
func plain(text []byte) []byte {
	return bytes.ReplaceAll(bytes.ReplaceAll(text, []byte("\r"), nil), []byte("\n"), nil)
}

// program is a program to run.
type program struct {
	root  string // its root directory; "": this system's
	path  string
	args  []string
	input []byte
	as    *account // nil: this user
}

// run runs a program, and returns what it prints.
func run(p program) ([]byte, error) {
	cmd := exec.Command(p.path, p.args...)
	cmd.Stdin, cmd.SysProcAttr = bytes.NewReader(p.input), &syscall.SysProcAttr{}
	cmd.Env = append(os.Environ(), "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
	if p.root != "" {
		cmd.SysProcAttr.Chroot, cmd.Dir = p.root, "/"
	}
	if p.as != nil && os.Getuid() == 0 && p.as.uid != 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: p.as.uid, Gid: p.as.gid}
		cmd.Env = append(cmd.Env, "HOME="+p.as.home)
	}
	return cmd.CombinedOutput()
}
