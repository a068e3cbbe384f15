package storage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path"
	"strings"
	"time"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// How long a server may take to answer a connection, and to take or give an object.
const (
	sshPatience    = 30 * time.Second
	objectPatience = 10 * time.Minute
)

// sftpStorage keeps objects as files on an SFTP server.
type sftpStorage struct {
	root   string
	client *sftp.Client
	conn   *ssh.Client
	stop   func() bool
}

// openSFTP logs in with a key, at a server whose own key is known: an unknown server
// could be anybody's.
func openSFTP(ctx context.Context, u *url.URL) (Storage, error) {
	config, err := sshConfig(u)
	if err != nil {
		return nil, err
	}
	address := net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "22"))
	raw, err := (&net.Dialer{Timeout: sshPatience, KeepAliveConfig: net.KeepAliveConfig{Enable: true}}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	// Neither the handshake nor what follows takes a context.
	s := &sftpStorage{root: u.Path, stop: context.AfterFunc(ctx, func() { raw.Close() })}
	conn, channels, requests, err := ssh.NewClientConn(raw, address, config)
	if err != nil {
		s.stop()
		return nil, errors.Join(hostFault(err, address), raw.Close())
	}
	s.conn = ssh.NewClient(conn, channels, requests)
	if s.client, err = sftp.NewClient(s.conn, sftp.UseConcurrentWrites(true)); err != nil {
		s.stop()
		return nil, errors.Join(fmt.Errorf("start SFTP: %w", err), s.conn.Close())
	}
	if info, err := s.client.Stat(s.root); err != nil || !info.IsDir() {
		return nil, errors.Join(fmt.Errorf("there is no directory %s on the server: make it", s.root), s.Close())
	}
	return s, nil
}

func sshConfig(u *url.URL) (*ssh.ClientConfig, error) {
	query := u.Query()
	text, err := os.ReadFile(cmp.Or(query.Get("key"), "/root/.ssh/id_ed25519"))
	if err != nil {
		return nil, fmt.Errorf("key: %w", err)
	}
	key, err := ssh.ParsePrivateKey(text)
	if err != nil {
		return nil, fmt.Errorf("key: give an SSH private key without a passphrase: %w", err)
	}
	hosts, err := knownhosts.New(cmp.Or(query.Get("known-hosts"), "/root/.ssh/known_hosts"))
	if err != nil {
		return nil, fmt.Errorf("known-hosts: %w", err)
	}
	return &ssh.ClientConfig{User: u.User.Username(), Auth: []ssh.AuthMethod{ssh.PublicKeys(key)}, HostKeyCallback: hosts, Timeout: sshPatience}, nil
}

// hostFault names the mend of a server that is not known.
func hostFault(err error, address string) error {
	unknown, ok := errors.AsType[*knownhosts.KeyError](err)
	switch {
	case ok && len(unknown.Want) > 0:
		return fmt.Errorf("the server shows another key than known-hosts has: someone may intercept the connection: %w", err)
	case ok:
		return fmt.Errorf("the server's key is not in known-hosts: compare it, and add it with ssh-keyscan: %w", err)
	}
	return fmt.Errorf("log in at %s: %w", address, err)
}

// watch closes the connection to a server that does not answer, unless stop is called.
func (s *sftpStorage) watch() (stop func() bool) {
	return time.AfterFunc(objectPatience, func() { s.conn.Close() }).Stop
}

func (s *sftpStorage) file(name string) string { return path.Join(s.root, name) }

// Put writes a temporary file and renames it, which replaces where the server has the extension of
// OpenSSH.
func (s *sftpStorage) Put(_ context.Context, name string, content []byte) error {
	defer s.watch()()
	to := s.file(name)
	if err := s.client.MkdirAll(path.Dir(to)); err != nil {
		return err
	}
	half := to + halfSuffix
	if err := s.write(half, content); err != nil {
		return errors.Join(err, s.client.Remove(half))
	}
	if _, ok := s.client.HasExtension("posix-rename@openssh.com"); ok {
		return s.client.PosixRename(half, to)
	}
	if err := s.Remove(context.Background(), name); err != nil {
		return err
	}
	return s.client.Rename(half, to)
}

func (s *sftpStorage) write(name string, content []byte) error {
	f, err := s.client.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if _, ok := s.client.HasExtension("fsync@openssh.com"); ok {
		err = errors.Join(err, f.Sync())
	}
	return errors.Join(err, f.Close())
}

func (s *sftpStorage) Get(_ context.Context, name string, limit int64) ([]byte, error) {
	defer s.watch()()
	f, err := s.client.Open(s.file(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readLimited(f, limit)
}

func (s *sftpStorage) List(ctx context.Context, folder string, f func(Object) error) error {
	for w := s.client.Walk(s.file(folder)); w.Step(); {
		if errors.Is(w.Err(), fs.ErrNotExist) {
			continue
		}
		if err := errors.Join(w.Err(), ctx.Err()); err != nil {
			return err
		}
		if !w.Stat().Mode().IsRegular() {
			continue
		}
		name := strings.TrimPrefix(strings.TrimPrefix(w.Path(), path.Clean(s.root)), "/")
		if err := f(Object{name, w.Stat().Size(), w.Stat().ModTime()}); err != nil {
			return err
		}
	}
	return nil
}

func (s *sftpStorage) Remove(_ context.Context, name string) error {
	defer s.watch()()
	if err := s.client.Remove(s.file(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for folder := path.Dir(name); folder != "." && s.client.RemoveDirectory(s.file(folder)) == nil; folder = path.Dir(folder) {
	}
	return nil
}

func (s *sftpStorage) Close() error {
	s.stop()
	_ = s.conn.Close() // first: the client waits until the server has closed its side
	_ = s.client.Close()
	return nil
}

// readLimited reads all, if that is at most limit bytes.
func readLimited(r io.Reader, limit int64) ([]byte, error) {
	content, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(content)) > limit {
		err = fmt.Errorf("it has more than %d bytes", limit)
	}
	return content, err
}
