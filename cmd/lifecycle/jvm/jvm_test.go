package jvm

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// The values and texts are those of java-buildpack-memory-calculator 4.2 (calculator.go, memory/size.go).
func TestCalculate(t *testing.T) {
	tests := []struct {
		name     string
		m        memory
		opts     string
		want     string
		wantErr  string
		required string
	}{
		{name: "all from defaults", m: memory{total: 1 << 30, classes: 1000, threads: 250},
			want: "-XX:MaxDirectMemorySize=10M -XX:MaxMetaspaceSize=19335K -XX:ReservedCodeCacheSize=240M -Xss1M -Xmx517240K"},
		{name: "head room", m: memory{total: 1 << 30, classes: 1000, threads: 250, headRoom: 10},
			want: "-XX:MaxDirectMemorySize=10M -XX:MaxMetaspaceSize=19335K -XX:ReservedCodeCacheSize=240M -Xss1M -Xmx412382K"},
		{name: "user's sizes", m: memory{total: 1 << 30, classes: 1000, threads: 20}, opts: "-Dx=y -Xmx100m -XX:MaxDirectMemorySize=20M -Xss512k",
			want: "-XX:MaxMetaspaceSize=19335K -XX:ReservedCodeCacheSize=240M"},
		{name: "nothing left to say", m: memory{total: 1 << 30, classes: 1, threads: 1}, opts: "-Xmx1m -XX:MaxDirectMemorySize=1m -XX:MaxMetaspaceSize=1m -XX:ReservedCodeCacheSize=1m -Xss1m", want: ""},
		{name: "too small", m: memory{total: 512 << 20, classes: 14775, threads: 250},
			wantErr: "required memory 609358K is greater than 512M available for allocation: -XX:MaxDirectMemorySize=10M, -XX:MaxMetaspaceSize=97358K, -XX:ReservedCodeCacheSize=240M, -Xss1M x 250 threads"},
		{name: "heap too large", m: memory{total: 1 << 30, classes: 14775, threads: 250}, opts: "-Xmx1g",
			wantErr: "required memory 1657934K is greater than 1G available for allocation: -XX:MaxDirectMemorySize=10M, -Xmx1G, -XX:MaxMetaspaceSize=97358K, -XX:ReservedCodeCacheSize=240M, -Xss1M x 250 threads"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var err error
			if test.m.set, err = parseRegions(test.opts); err != nil {
				t.Fatal(err)
			}
			got, err := test.m.calculate()
			if got != test.want || (err == nil) != (test.wantErr == "") || err != nil && err.Error() != test.wantErr {
				t.Errorf("got %q, %v; want %q, %q", got, err, test.want, test.wantErr)
			}
		})
	}
}

// What is advised suffices, and half of it does not.
func TestAdvice(t *testing.T) {
	m := memory{total: 256 << 20, classes: 14775, threads: 250}
	if got := m.advice(); !strings.Contains(got, "cf scale -m 704M") {
		t.Errorf("got %q; want 704M", got)
	}
	m.total = 704 << 20
	if out, err := m.calculate(); err != nil || !strings.Contains(out, "-Xmx") {
		t.Errorf("got %q, %v; want a heap", out, err)
	}
	heap := size(1 << 30)
	m.set.heap = &heap
	if got := m.advice(); !strings.Contains(got, "cf scale -m 1664M") {
		t.Errorf("with -Xmx1g: got %q; want 1664M", got)
	}
}

func TestFaultsOfArguments(t *testing.T) {
	for want, m := range map[string]memory{
		"--total-memory must be specified":                                         {classes: 1, threads: 1},
		"--total-memory must be greater than 1024: 1023":                           {total: 1023, classes: 1, threads: 1},
		"--loaded-class-count must be positive: -1":                                {total: 1 << 20, classes: -1, threads: 1},
		"--thread-count must be specified":                                         {total: 1 << 20, classes: 1},
		"--head-room must be a valid percentage: 101":                              {total: 1 << 20, classes: 1, threads: 1, headRoom: 101},
		"--loaded-class-count must be specified\n--thread-count must be specified": {total: 1 << 20},
	} {
		if err := m.check(); err == nil || err.Error() != want {
			t.Errorf("got %v; want %s", err, want)
		}
	}
}

func TestSizes(t *testing.T) {
	for text, want := range map[string]string{"0": "0", "1023": "0", "1024": "1K", "1536k": "1536K", "2048K": "2M", "512m": "512M", "1024m": "1G", "3T": "3T", "1b": "0"} {
		if got, err := parseSize(text); err != nil || got.String() != want {
			t.Errorf("%s: got %s, %v; want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"", "m", "1x", "-1", "+1", "1.5g", "1mm"} {
		if got, err := parseSize(text); err == nil {
			t.Errorf("%q: got %s; want an error", text, got)
		}
	}
}

// Cases of java-buildpack's docs/framework-java_opts.md.
func TestWords(t *testing.T) {
	for text, want := range map[string][]string{
		"":                             nil,
		" -a  -b\t-c\n":                {"-a", "-b", "-c"},
		`"-Dfoo=bar baz" -b`:           {"-Dfoo=bar baz", "-b"},
		`-Dfoo='bar baz'x`:             {"-Dfoo=bar bazx"},
		`-Da=C:\\data`:                 {`-Da=C:\data`},
		`-Da=b\ c`:                     {"-Da=b c"},
		`""`:                           {""},
		"-Da=* -Db=a;b|c>d":            {"-Da=*", "-Db=a;b|c>d"},
		"-Da=$(echo a b) -c":           {"-Da=$(echo a b)", "-c"},
		"-Da=`echo a b` -c":            {"-Da=`echo a b`", "-c"},
		"-Da=${a b} $":                 {"-Da=${a b}", "$"},
		`"a\"b\n"`:                     {`a"b\n`},
		"'open":                        {"open"},
		"$(nested $(one two) three) x": {"$(nested $(one two) three)", "x"},
	} {
		if diff := cmp.Diff(want, Words(text)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

func TestOptions(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	t.Setenv("PORT", "8080")
	t.Setenv("CF_INSTANCE_CERT", "")
	t.Setenv("JAVA_OPTS", "-Dport=$PORT\n-Dliteral=\\$PORT -Dno=$(id)")
	s := Settings{Before: []string{"-Djava.io.tmpdir=$TMPDIR", "-Dp=${PORT}1"}, Configured: []string{"-Xms1m", "-Da=b c$PORT"}, FromEnvironment: true}
	got := s.assemble()
	if store := "-Djavax.net.ssl.trustStore=" + filepath.Join(dir, "truststore.jks"); len(got) == 7 && got[3] == store {
		got = append(got[:3], got[4:]...) // where this machine has certificates
	}
	want := []string{"-Djava.io.tmpdir=" + dir, "-Dp=80801", fmt.Sprintf("-XX:ActiveProcessorCount=%d", runtime.NumCPU()), "-Xms1m", `-Da=b\ c8080`, "-Dport=8080 -Dliteral=$PORT -Dno=$(id)"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	s.FromEnvironment = false
	if got := strings.Join(s.assemble(), " "); strings.Contains(got, "literal") {
		t.Errorf("got %q; want nothing of the environment", got)
	}
	s.Configured = []string{"-Djavax.net.ssl.trustStore=mine"}
	if got := strings.Join(s.assemble(), " "); strings.Contains(got, "truststore.jks") {
		t.Errorf("got %q; want only the user's trust store", got)
	}
}

func TestParentJVM(t *testing.T) {
	proc := t.TempDir()
	process := func(pid, exe, stat string) {
		dir := filepath.Join(proc, pid)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(exe, filepath.Join(dir, "exe")); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "stat"), []byte(stat), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	process("7", "/usr/lib/jvm/x/bin/java", "7 (ja) va) S 1 7 7")
	process("8", "/usr/bin/dash", "8 (sh) S 7 7 7")
	process("9", "/usr/bin/dash", "9 (sh) S 1 7 7")
	for pid, want := range map[int]int{7: 7, 8: 7, 9: 0, 10: 0} {
		if got, err := parentJVM(proc, pid); got != want || (err == nil) != (want > 0) {
			t.Errorf("%d: got %d, %v; want %d", pid, got, err, want)
		}
	}
}

func TestHistogram(t *testing.T) {
	var b bytes.Buffer
	writeHistogram(&b, " num     #instances         #bytes  class name (module)\n----\n   1:         18273      313157136  [B (java.base@17.0.15)\n   2:             5             80  java.lang.String (java.base@17.0.15)\nTotal  1 2\n")
	want := "| Instance Count | Total Bytes | Class Name       |\n| 18273          | 313157136   | [B               |\n| 5              | 80          | java.lang.String |\n"
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The JDK's own tool reads the key store.
func TestTrustStore(t *testing.T) {
	keytool, err := exec.LookPath("keytool")
	if err != nil {
		t.Skip("needs keytool")
	}
	dir := t.TempDir()
	for _, name := range []string{"certs/..data", "certs/..old"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write := func(name string, certificates ...[]byte) string {
		var b bytes.Buffer
		for _, c := range certificates {
			_ = pem.Encode(&b, &pem.Block{Type: "CERTIFICATE", Bytes: c})
		}
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	operator := certificate(t, "operator")
	write("certs/ca.crt", operator, operator)
	t.Setenv("CF_SYSTEM_CERT_PATH", filepath.Join(dir, "certs"))
	t.Setenv("CF_INSTANCE_CERT", write("instance.crt", certificate(t, "instance"), certificate(t, "diego")))
	path, err := trustStore(filepath.Join(dir, "store.jks"))
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(keytool, "-J-Duser.language=en", "-list", "-v", "-keystore", path, "-storepass", "changeit").CombinedOutput()
	if text := string(out); err != nil || strings.Count(text, "Owner: CN=operator") != 1 || strings.Count(text, "Owner: CN=diego") != 1 || strings.Contains(text, "CN=instance") {
		t.Errorf("got %v, %s; want the CAs once, and not the instance", err, out)
	}
}

func certificate(t *testing.T, name string) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return der
}
