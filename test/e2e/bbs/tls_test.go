package bbs

import (
	"fmt"
	"strings"
	"time"

	"cupola/server/bbs/bbspb"
	"cupola/test/e2e"
)

// tlsPorts desires an LRP with two ports, without certificate_properties, and speaks TLS
// to them as Diego's clients do: the executor's ports, in the order of the LRP's.
func (b *bbsClient) tlsPorts(archive string) {
	d := probeLRP("secured", archive)
	d.Ports = []uint32{9000, 8080}
	d.Routes.Routes["internal-router"] = []byte(`[{"hostname":"secured.apps.internal"}]`)
	b.must("/v1/desired_lrp/desire.r2", &bbspb.DesireLRPRequest{DesiredLrp: d})
	a := b.runningLRPs("secured", 1)[0]
	var got []string
	for _, p := range a.NetInfo.Ports {
		got = append(got, fmt.Sprintf("%d %d %d %d", p.ContainerPort, p.HostPort, p.ContainerTlsProxyPort, p.HostTlsProxyPort))
	}
	if want := "9000 9000 61001 61001, 8080 8080 61002 61002, 8080 8080 61443 0"; strings.Join(got, ", ") != want {
		b.T.Errorf("got ports %s; want %s", strings.Join(got, ", "), want)
	}
	// Without a monitor an instance runs before it listens.
	e2e.Eventually(b.T, time.Minute, func() string {
		env, err := lookInside(a, 8080, "/env")
		if err != nil || strings.Contains(env, "CF_INSTANCE_CERT=") || !strings.Contains(env, `"external_tls_proxy":61002,"internal_tls_proxy":61002},{"external":8080,"internal":8080,"internal_tls_proxy":61443}]`) {
			return fmt.Sprintf("got %s, %v", env, err)
		}
		return ""
	})
	for _, port := range []int{61001, 61002, 61443} {
		e2e.Eventually(b.T, time.Minute, func() string {
			if _, err := b.DialInstance(a.NetInfo.InstanceAddress, port, a.InstanceKey.InstanceGuid); err != nil {
				return fmt.Sprintf("%d: %v", port, err)
			}
			return ""
		})
	}
	e2e.Eventually(b.T, time.Minute, func() string {
		if _, err := b.DialInstance(a.NetInfo.InstanceAddress, 61443, "secured.apps.internal"); err != nil {
			return err.Error()
		}
		return ""
	})
	if _, err := b.DialInstance(a.NetInfo.InstanceAddress, 61002, "secured.apps.internal"); err == nil {
		b.T.Error("the certificate of an app's port has the internal route")
	}
	b.removeLRP("secured")

	d.ProcessGuid, d.Ports = "taken", []uint32{8080, 61443}
	b.must("/v1/desired_lrp/desire.r2", &bbspb.DesireLRPRequest{DesiredLrp: d})
	e2e.Eventually(b.T, time.Minute, func() string {
		for _, a := range b.actuals("taken") {
			if strings.HasSuffix(a.CrashReason, "port 61443 is reserved for container networking") {
				return ""
			}
		}
		return fmt.Sprint(b.actuals("taken"))
	})
	b.removeLRP("taken")
}
