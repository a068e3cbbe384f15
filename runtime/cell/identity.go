package cell

import (
	"context"
	"fmt"
	"net/netip"
	"path"
	"time"

	"cupola/runtime/container"
	"cupola/runtime/contract"
	"cupola/runtime/identity"
	"cupola/runtime/lrp"
)

// Identities issues instance identity certificates: an identity.Authority.
type Identities interface {
	Issue(identity.Subject) (identity.Credentials, error)
	IssueLight(identity.Subject) (identity.Credentials, error)
	Certify(s identity.Subject, of []byte) (certificate []byte, err error)
	Certificate() []byte        // of the authority
	RenewBefore() time.Duration // how long before its end one is replaced
}

// Diego's names of a container's credentials.
const (
	credentialsPath = "/etc/cf-instance-credentials"
	certName        = "instance.crt"
	keyName         = "instance.key"
	authorityName   = "trusted-ca-1.crt"
)

// The directories that hold them.
const (
	credentialsTree = "credentials"
	authorityTree   = "authority"
	proxyTree       = "proxy"
)

// makeCredentials gives the container its certificate, if it is to have one.
func (b *build) makeCredentials() error {
	issuer := b.cell.cfg.Identities
	if issuer == nil {
		return nil
	}
	b.update(func(r *record) { r.TLSPorts = b.hasTLSPorts() })
	if b.named() || b.hasTLSPorts() {
		if err := b.renew(b.user.GID); err != nil {
			return &blame{"failed to create credentials directory", err}
		}
	}
	if b.full.SystemCertificatesPath == "" {
		return nil
	}
	if err := b.trust(b.user.GID); err != nil {
		return &blame{"failed to create credentials directory", err}
	}
	b.update(func(r *record) { r.HasAuthority = true })
	return nil
}

// renew gives the container, and its TLS ports, a new certificate, which its group gid
// can read. Without organizational units only the TLS ports have one.
func (i *instance) renew(gid uint32) error {
	subject, err := i.subject()
	if err != nil {
		return err
	}
	issue := i.cell.cfg.Identities.Issue
	if !i.named() {
		issue = i.cell.cfg.Identities.IssueLight
	}
	c, err := issue(subject)
	if err != nil {
		return err
	}
	if i.named() {
		files := []lrp.File{{Path: certName, Content: c.Certificate}, {Path: keyName, Content: c.Key}}
		if err := i.cell.cfg.Files.Replace(i.guid(), credentialsTree, gid, files); err != nil {
			return err
		}
	}
	i.update(func(r *record) { r.CertifiedUntil = c.NotAfter })
	if !i.record().TLSPorts {
		return nil
	}
	return i.secure(gid, c)
}

// named reports whether the container itself has a certificate, which says whose it is.
func (i *instance) named() bool { return len(i.spec.OrganizationalUnits) > 0 }

func (i *instance) subject() (identity.Subject, error) {
	address, err := netip.ParseAddr(i.record().Address)
	return identity.Subject{InstanceGUID: i.guid(), Address: address, OrganizationalUnits: i.spec.OrganizationalUnits}, err
}

// trust gives the container the certificates that it should trust.
func (i *instance) trust(gid uint32) error {
	files := []lrp.File{{Path: authorityName, Content: i.cell.cfg.Identities.Certificate()}}
	return i.cell.cfg.Files.Replace(i.guid(), authorityTree, gid, files)
}

// credentialMounts show the container its certificate, and those that it should
// trust.
func (b *build) credentialMounts() []container.Mount {
	var mounts []container.Mount
	rec := b.record()
	if b.named() && !rec.CertifiedUntil.IsZero() {
		mounts = append(mounts, b.memoryMount(credentialsTree, credentialsPath))
	}
	if rec.TLSPorts {
		mounts = append(mounts, b.memoryMount(proxyTree, contract.ProxyDir))
	}
	if rec.HasAuthority {
		mounts = append(mounts, b.memoryMount(authorityTree, path.Clean("/"+b.full.SystemCertificatesPath)))
	}
	return mounts
}

// credentialEnv says where they are.
func (b *build) credentialEnv() []lrp.EnvVar {
	var env []lrp.EnvVar
	rec := b.record()
	if b.named() && !rec.CertifiedUntil.IsZero() {
		env = append(env,
			lrp.EnvVar{Name: "CF_INSTANCE_CERT", Value: path.Join(credentialsPath, certName)},
			lrp.EnvVar{Name: "CF_INSTANCE_KEY", Value: path.Join(credentialsPath, keyName)})
	}
	if rec.HasAuthority {
		env = append(env, lrp.EnvVar{Name: contract.EnvCertificates, Value: path.Clean("/" + b.full.SystemCertificatesPath)})
	}
	return env
}

// renewEach renews certificates in time, until ctx ends.
func (c *Cell) renewEach(ctx context.Context) {
	if c.cfg.Identities == nil {
		return
	}
	tick := time.NewTicker(min(sweepInterval, c.cfg.Identities.RenewBefore()/10))
	defer tick.Stop()
	for {
		c.renewAll(ctx)
		c.certifyNames(ctx)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// renewAll replaces the certificates that end soon. A container whose
// certificate could not be replaced is tried again the next time.
func (c *Cell) renewAll(ctx context.Context) {
	for _, i := range c.all() {
		rec := i.record()
		if rec.CertifiedUntil.IsZero() || time.Until(rec.CertifiedUntil) > c.cfg.Identities.RenewBefore() || rec.Phase != lrp.PhaseStarting && rec.Phase != lrp.PhaseRunning {
			continue
		}
		if err := i.renewKept(rec.User.GID); err != nil && ctx.Err() == nil {
			c.cfg.Log.ErrorContext(ctx, "instance certificate was not renewed", "instance_guid", i.guid(), "err", err)
		}
	}
}

func (i *instance) renewKept(gid uint32) error {
	if err := i.renew(gid); err != nil {
		return err
	}
	if i.record().HasAuthority { // which may have been renewed, too
		if err := i.trust(gid); err != nil {
			return err
		}
	}
	if err := i.save(func(*record) {}); err != nil {
		return fmt.Errorf("keep the time of the certificate: %w", err)
	}
	return nil
}
