package cell

import (
	"context"
	"fmt"
	"net/netip"
	"path"
	"time"

	"cupola/runtime/container"
	"cupola/runtime/identity"
	"cupola/runtime/lrp"
)

// Identities issues instance identity certificates: an identity.Authority.
type Identities interface {
	Issue(identity.Subject) (identity.Credentials, error)
	Certificate() []byte // of the authority
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
)

// renewBefore is how long before its end a certificate is replaced: Diego's
// time.
const renewBefore = 30 * time.Minute

// makeCredentials gives the container its certificate, if it is to have one.
func (b *build) makeCredentials() error {
	issuer := b.cell.cfg.Identities
	if issuer == nil {
		return nil
	}
	if len(b.full.OrganizationalUnits) > 0 {
		if err := b.renew(b.user.GID); err != nil {
			return &blame{"failed to create credentials directory", err}
		}
	}
	if b.full.SystemCertificatesPath == "" {
		return nil
	}
	files := []lrp.File{{Path: authorityName, Content: issuer.Certificate()}}
	if err := b.cell.cfg.Files.Replace(b.guid(), authorityTree, b.user.GID, files); err != nil {
		return &blame{"failed to create credentials directory", err}
	}
	b.update(func(r *record) { r.HasAuthority = true })
	return nil
}

// renew gives the container a new certificate, which its group gid can read.
func (i *instance) renew(gid uint32) error {
	address, err := netip.ParseAddr(i.record().Address)
	if err != nil {
		return err
	}
	c, err := i.cell.cfg.Identities.Issue(identity.Subject{InstanceGUID: i.guid(), Address: address, OrganizationalUnits: i.spec.OrganizationalUnits})
	if err != nil {
		return err
	}
	files := []lrp.File{{Path: certName, Content: c.Certificate}, {Path: keyName, Content: c.Key}}
	if err := i.cell.cfg.Files.Replace(i.guid(), credentialsTree, gid, files); err != nil {
		return err
	}
	i.update(func(r *record) { r.CertifiedUntil = c.NotAfter })
	return nil
}

// credentialMounts show the container its certificate, and those that it should
// trust.
func (b *build) credentialMounts() []container.Mount {
	var mounts []container.Mount
	rec := b.record()
	if !rec.CertifiedUntil.IsZero() {
		mounts = append(mounts, b.memoryMount(credentialsTree, credentialsPath))
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
	if !rec.CertifiedUntil.IsZero() {
		env = append(env,
			lrp.EnvVar{Name: "CF_INSTANCE_CERT", Value: path.Join(credentialsPath, certName)},
			lrp.EnvVar{Name: "CF_INSTANCE_KEY", Value: path.Join(credentialsPath, keyName)})
	}
	if rec.HasAuthority {
		env = append(env, lrp.EnvVar{Name: "CF_SYSTEM_CERT_PATH", Value: path.Clean("/" + b.full.SystemCertificatesPath)})
	}
	return env
}

// renewAll replaces the certificates that end soon. A container whose
// certificate could not be replaced is tried again the next time.
func (c *Cell) renewAll(ctx context.Context) {
	if c.cfg.Identities == nil {
		return
	}
	for _, i := range c.all() {
		rec := i.record()
		if rec.CertifiedUntil.IsZero() || time.Until(rec.CertifiedUntil) > renewBefore || rec.Phase != lrp.PhaseStarting && rec.Phase != lrp.PhaseRunning {
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
	if err := i.save(func(*record) {}); err != nil {
		return fmt.Errorf("keep the time of the certificate: %w", err)
	}
	return nil
}
