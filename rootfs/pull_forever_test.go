package rootfs

import (
	"context"
	"crypto/x509"
	"fmt"
	"os"
	"time"

	"cupola/rootfs/image"
	"cupola/rootfs/reference"
	"cupola/rootfs/registry"
)

// pullForever pulls and removes until it is killed, writing a line for each.
func pullForever(dir, ref, cert string) {
	s, err := New(Config{Dir: dir, IDs: testIDs, Registries: registry.Config{RootCAs: poolOf(cert)}})
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
	r, err := reference.Parse(ref)
	for err == nil {
		fmt.Println("begin")
		if _, err = s.Images.Pull(context.Background(), r, image.PullOptions{Progress: func(p image.LayerProgress) { fmt.Println(p.Phase, p.Index) }}); err == nil {
			fmt.Println("pulled")
			_, err = s.Images.GC(context.Background(), image.Policy{All: true, Grace: time.Nanosecond})
		}
	}
	fmt.Println("error:", err)
	os.Exit(1)
}

func poolOf(cert string) *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(cert))
	return pool
}
