package faces

import (
	"context"
	"io"

	"cupola/runtime/contract"
	"cupola/server/api"
	"cupola/server/gitpush"
	"cupola/server/sshproxy"
	"cupola/server/uaa"
	"cupola/store/cf"
)

// OpenSSH makes the proxy, with a host key that is made once.
func (f *Faces) OpenSSH(context.Context) error {
	x := f.Executor
	if x.SSH == "off" {
		return nil
	}
	key, err := sshproxy.HostKey(x.Dir.Path("ssh_host_key"))
	if err != nil {
		return err
	}
	f.sshKey = key.PublicKey()
	f.ssh = sshproxy.New(sshproxy.Config{Store: x.Store, HostKey: key, Logs: x.Logs.Line, Log: x.Log, MaxConnections: f.limits.SSH,
		Redeem: func(ctx context.Context, code string) (cf.Identity, error) {
			return f.UAA.Redeem(ctx, uaa.SSHClient, code)
		},
		Git: sshproxy.Git{
			Owner: func(ctx context.Context, fingerprint string) (cf.Identity, error) {
				return f.UAA.KeyOwner(ctx, fingerprint)
			},
			Run: func(ctx context.Context, c sshproxy.Command) int {
				return f.git.ServeSSH(ctx, gitpush.SSHCommand(c))
			}},
		Diego: func() string {
			if f.endpoint == nil {
				return ""
			}
			return f.endpoint.SSH()
		},
		Hold: func(ctx context.Context, appGUID string) (func(), error) { return f.Router.Hold(ctx, appGUID) },
		Attach: func(ctx context.Context, instanceGUID string) (io.ReadWriteCloser, error) {
			return x.Attach(ctx, instanceGUID, contract.Helper, contract.CommandSSHD)
		}})
	return nil
}

// sshInfo is what the API says of `cf ssh`.
func (f *Faces) sshInfo() api.SSHInfo {
	if f.ssh == nil {
		return api.SSHInfo{}
	}
	return api.SSHInfo{Address: f.Executor.SSH, HostKeyFingerprint: sshproxy.Fingerprint(f.sshKey), ClientID: uaa.SSHClient}
}

// serveSSH serves sessions until ctx or live ends: a daemon that ends waits for
// requests, and not for users to leave.
func (f *Faces) serveSSH(ctx, live context.Context) error {
	live, stop := context.WithCancel(live)
	defer stop()
	defer context.AfterFunc(ctx, stop)()
	return f.ssh.Serve(live, f.bound.SSH)
}
