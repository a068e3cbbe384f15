package debian

import (
	"bytes"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

const (
	certificates = "usr/share/ca-certificates"
	bundle       = "etc/ssl/certs/ca-certificates.crt"
)

// finishCertificates does what update-ca-certificates does, but for the links by
// hash: the bundle, a link for each certificate, and the list.
func finishCertificates(t *tree, _ []*installed) error {
	names := t.glob(certificates+"/mozilla", "*.crt")
	if len(names) == 0 {
		return nil
	}
	var all, list bytes.Buffer
	for _, name := range names {
		content, err := t.read(name)
		if err != nil {
			return err
		}
		all.Write(bytes.TrimRight(content, "\n"))
		all.WriteByte('\n')
		list.WriteString(strings.TrimPrefix(name, certificates+"/") + "\n")
		link := "etc/ssl/certs/" + strings.TrimSuffix(path.Base(name), ".crt") + ".pem"
		if err := t.symlink(link, "/"+name, t.own(0o777)); err != nil {
			return err
		}
	}
	if err := t.put("etc/ca-certificates.conf", 0o644, list.Bytes()); err != nil {
		return err
	}
	if err := t.mkdir("usr/local/share/ca-certificates", t.own(0o755)); err != nil {
		return err
	}
	return t.put(bundle, 0o644, all.Bytes())
}

// finishOpenSSL points OpenSSL's default file at the bundle, where the package
// leaves that out, and lets it include further files.
func finishOpenSSL(t *tree, includes []string) error {
	if n := t.lookup("usr/lib/ssl"); n != nil && n.kind == fs.ModeDir && t.lookup("usr/lib/ssl/cert.pem") == nil && t.lookup(bundle) != nil {
		if err := t.symlink("usr/lib/ssl/cert.pem", "/"+bundle, t.own(0o777)); err != nil {
			return err
		}
	}
	const config = "etc/ssl/openssl.cnf"
	if t.lookup(config) == nil || len(includes) == 0 {
		return nil
	}
	content, err := t.read(config)
	if err != nil {
		return err
	}
	content = append(content, '\n')
	for _, name := range includes {
		content = fmt.Appendf(content, ".include %s\n", name)
	}
	return t.put(config, 0o644, content)
}
