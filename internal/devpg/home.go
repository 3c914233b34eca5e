package devpg

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

const homePrefix = "tidemark-pg-"

// home is the server's temporary directory: the socket, the log, the lock of the
// process that owns it and, without Options.Dir, the data.
type home struct {
	dir  string
	lock *os.File
}

func (h home) socketDir() string { return filepath.Join(h.dir, "run") }
func (h home) logFile() string   { return filepath.Join(h.dir, "postgres.log") }

func newHome(owner *syscall.Credential, durable bool) (home, error) {
	bases := tempBases(durable)
	for _, base := range bases {
		sweep(base, time.Minute)
	}
	base, err := firstUsable(bases, owner)
	if err != nil {
		return home{}, err
	}
	dir, err := os.MkdirTemp(base, homePrefix)
	if err != nil {
		return home{}, err
	}
	h := home{dir: dir}
	if err := os.Chmod(dir, 0o711); err != nil { //nolint:gosec // the server's OS user must be able to enter it
		return h, err
	}
	if h.lock, err = lockDir(dir, os.O_CREATE); err != nil {
		return h, err
	}
	return h, mkdirFor(h.socketDir(), owner)
}

func (h home) remove() error {
	if h.dir == "" {
		return nil
	}
	err := os.RemoveAll(h.dir)
	if h.lock != nil {
		err = errors.Join(err, h.lock.Close())
	}
	return err
}

// lockDir locks a directory. The lock ends with the process, however it ends.
func lockDir(dir string, flags int) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), flags|os.O_RDWR|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// sweep removes the homes that killed processes of this user left behind. It
// skips homes younger than age, which their process may not have locked yet.
func sweep(base string, age time.Duration) {
	dirs, _ := filepath.Glob(filepath.Join(base, homePrefix+"*")) // fails only on a bad pattern
	for _, dir := range dirs {
		info, err := os.Lstat(dir)
		if err != nil || !info.IsDir() || time.Since(info.ModTime()) < age {
			continue
		}
		if st, ok := info.Sys().(*syscall.Stat_t); !ok || int(st.Uid) != os.Getuid() {
			continue
		}
		if lock, err := lockDir(dir, 0); err == nil {
			// If a server still runs here, it stops itself when its postmaster.pid
			// is gone.
			_ = errors.Join(os.RemoveAll(dir), lock.Close()) // the next sweep tries again
		}
	}
}

// tempBases returns the temporary directories to try in turn. Data that need not
// be durable goes to memory if there is enough: a clone of a database creates 300
// files, in 50 ms there and in 200 ms on the disk of the same machine.
func tempBases(durable bool) []string {
	bases := []string{os.TempDir(), "/tmp", "/var/tmp"}
	const memory, enough = "/dev/shm", 2 << 30 // containers often have 64 MB
	if !durable && os.Getenv("TMPDIR") == "" && freeBytes(memory) > enough {
		bases = append([]string{memory}, bases...)
	}
	return bases
}

// firstUsable returns the first directory that the server's user can enter and
// whose path is short enough for that of a socket (103 bytes on macOS).
func firstUsable(bases []string, owner *syscall.Credential) (string, error) {
	var reasons error
	for _, dir := range bases {
		if len(dir) > 55 {
			reasons = errors.Join(reasons, fmt.Errorf("%s: too long for a socket", dir))
		} else if err := reachable(dir, owner); err != nil {
			reasons = errors.Join(reasons, err)
		} else {
			return dir, nil
		}
	}
	return "", reasons
}

// freeBytes returns how many bytes are free in dir, 0 if dir does not exist.
func freeBytes(dir string) uint64 {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(dir, &fs); err != nil {
		return 0
	}
	return uint64(fs.Bavail) * uint64(fs.Bsize) //nolint:gosec,unconvert // their types differ by system
}

// unprivileged returns the user to run the server as if this process is root:
// PostgreSQL refuses root, and initdb needs a user with a passwd entry.
func unprivileged() (*syscall.Credential, error) {
	if os.Getuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.ParseInt(u.Uid, 10, 64)
		gid, err2 := strconv.ParseInt(u.Gid, 10, 64)
		if err := errors.Join(err1, err2); err != nil {
			return nil, err
		}
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil //nolint:gosec // macOS calls nobody -2
	}
	return nil, errors.New("PostgreSQL does not run as root, and this machine has neither a user postgres nor a user nobody")
}

// reachable returns nil if the server's user can enter path and all directories
// above it. The error names the first one that it cannot enter, often root's home.
func reachable(path string, u *syscall.Credential) error {
	if u == nil {
		return nil
	}
	dir, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	for {
		info, err := os.Stat(dir)
		if err != nil {
			return err
		}
		st, _ := info.Sys().(*syscall.Stat_t)
		open := info.Mode()&0o001 != 0 || st != nil && st.Uid == u.Uid && info.Mode()&0o100 != 0
		if !open {
			return fmt.Errorf("%s: the OS user that PostgreSQL runs as (uid %d) cannot enter %s", path, u.Uid, dir)
		}
		if dir == filepath.Dir(dir) {
			return nil
		}
		dir = filepath.Dir(dir)
	}
}

func mkdirFor(dir string, u *syscall.Credential) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if u == nil {
		return nil
	}
	return os.Chown(dir, int(u.Uid), int(u.Gid))
}
