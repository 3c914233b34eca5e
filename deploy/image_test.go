// Package deploy_test runs the container image.
package deploy_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

func TestMain(m *testing.M) { tidemarktest.Main(m) }

func mustRun(t *testing.T, dir string, args ...string) {
	t.Helper()
	c := exec.CommandContext(t.Context(), args[0], args[1:]...)
	c.Dir, c.Env = dir, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
}

// blob is a file of an OCI layout.
type blob struct{ Digest string }

func (b blob) read(t *testing.T, layout string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(layout, "blobs", strings.Replace(b.Digest, ":", "/", 1)))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// parse reads JSON into a T.
func parse[T any](t *testing.T, text []byte) (v T) {
	t.Helper()
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

type imageConfig struct {
	Architecture string
	Config       struct {
		User            string
		Entrypoint, Cmd []string
	}
}

// unpack puts the layers of the only image of a layout below root.
func unpack(t *testing.T, layout, root string) imageConfig {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(layout, "index.json"))
	if err != nil {
		t.Fatal(err)
	}
	manifest := parse[struct {
		Config blob
		Layers []blob
	}](t, parse[struct{ Manifests []blob }](t, text).Manifests[0].read(t, layout))
	for _, layer := range manifest.Layers {
		unzipped, err := gzip.NewReader(bytes.NewReader(layer.read(t, layout)))
		if err != nil {
			t.Fatal(err)
		}
		archive := tar.NewReader(unzipped)
		for {
			header, err := archive.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			name := filepath.Join(root, filepath.Clean("/"+header.Name))
			if header.Typeflag == tar.TypeDir {
				err = os.MkdirAll(name, 0o755)
			} else {
				var content []byte
				if content, err = io.ReadAll(archive); err == nil {
					err = os.WriteFile(name, content, header.FileInfo().Mode())
				}
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	return parse[imageConfig](t, manifest.Config.read(t, layout))
}

// AD4: the image is the same when it is made again. Unpacked, with nothing else, as its user and with no file that this user may
// write, it installs the schema, runs, is ready, and stops.
func TestImage(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("builds the command")
	}
	if runtime.GOOS != "linux" || os.Getuid() != 0 {
		t.Skip("only root may chroot")
	}
	dir, err := os.MkdirTemp("", "tidemark-image") // below TempDir other users may not enter
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	binary, root := filepath.Join(dir, "tidemark"), filepath.Join(dir, "root")
	mustRun(t, "..", "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", binary, "./cmd/tidemark")
	var indexes []string
	for _, name := range []string{"layout", "again"} {
		mustRun(t, "image", "go", "run", ".", filepath.Join(dir, name), "v1.2.3", "linux/"+runtime.GOARCH+"="+binary)
		text, err := os.ReadFile(filepath.Join(dir, name, "index.json"))
		if err != nil {
			t.Fatal(err)
		}
		indexes = append(indexes, string(text))
	}
	if indexes[0] != indexes[1] {
		t.Errorf("two images of one binary differ: %s, %s", indexes[0], indexes[1])
	}

	c := unpack(t, filepath.Join(dir, "layout"), root)
	if c.Config.User != "65532:65532" || strings.Join(c.Config.Entrypoint, " ") != "/usr/bin/tidemark" || c.Architecture != runtime.GOARCH {
		t.Errorf("%+v", c)
	}
	roots, err := os.ReadFile(filepath.Join(root, "etc/ssl/certs/ca-certificates.crt"))
	if err != nil || bytes.Count(roots, []byte("BEGIN")) < 100 || !x509.NewCertPool().AppendCertsFromPEM(roots) {
		t.Errorf("%d authorities, %v", bytes.Count(roots, []byte("BEGIN")), err)
	}

	db := tidemarktest.NewEmptyDB(t)
	contained := func(args ...string) *exec.Cmd {
		cmd := &exec.Cmd{Path: c.Config.Entrypoint[0], Args: append([]string{"tidemark"}, args...), Dir: "/", Stderr: t.Output()}
		cmd.Env = []string{"TIDEMARK_DATABASE_URL=" + db.URL}
		cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: 65532, Gid: 65532}}
		return cmd
	}
	if err := contained("migrate", "up").Run(); err != nil {
		t.Fatal("migrate up: ", err)
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err == nil {
		err = errors.Join(free.Close(), os.WriteFile(filepath.Join(root, "etc/tidemark.yaml"),
			[]byte("admin: {listen: \""+free.Addr().String()+"\"}\n"), 0o644))
	}
	if err != nil {
		t.Fatal(err)
	}
	config := []string{"--config", "/etc/tidemark.yaml"}
	daemon := contained(append(c.Config.Cmd, config...)...)
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = daemon.Process.Kill() })
	for ready := time.Now().Add(time.Minute); contained(append([]string{"healthcheck"}, config...)...).Run() != nil; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(ready) {
			t.Fatal("not ready after a minute")
		}
	}
	if err := daemon.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := daemon.Wait(); err != nil {
		t.Error("stopped: ", err)
	}
}
