//go:build !linux

package rootfs

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
)

// Roots are overlays in mount namespaces: Linux alone has them. Elsewhere the package compiles, for editors and vet.

func (s *Store) mountRoot(Request, []string, string, string) error { return errors.ErrUnsupported }
func (s *Store) trySharing() error                                 { return errors.ErrUnsupported }
func unmountAll(string) error                                      { return nil }
func holdRun(string) error                                         { return errors.ErrUnsupported }
func isMount(string) bool                                          { return false }
func mountsBelow(string) ([]string, error)                         { return nil, nil }
func syncTree(string) error                                        { return nil }
func probe(Stack, IDMap) error                                     { return errors.ErrUnsupported }
func openDir(*os.File, string) (*os.File, error)                   { return nil, errors.ErrUnsupported }
func openRegular(*os.File, string) (*os.File, error)               { return nil, errors.ErrUnsupported }
func (IDMap) makeDir(*os.File, string, Owner) error                { return errors.ErrUnsupported }
func (IDMap) replaceFile(*os.File, string, []byte, fs.FileMode, Owner) error {
	return errors.ErrUnsupported
}
func openFollowing(*os.File, string) (*os.File, error)         { return nil, errors.ErrUnsupported }
func existsIn(*os.File, string) bool                           { return false }
func (IDMap) adoptLink(*os.File, string, string) error         { return errors.ErrUnsupported }
func packTree(context.Context, string, IDMap, io.Writer) error { return errors.ErrUnsupported }
func packTrees(context.Context, []subtree, IDMap, io.Writer) error {
	return errors.ErrUnsupported
}
func fingerprintTrees(context.Context, []subtree, IDMap) (string, int64, error) {
	return "", 0, errors.ErrUnsupported
}
