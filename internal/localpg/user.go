package localpg

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// account is the operating system user that the programs run as.
type account struct {
	name     string
	uid, gid uint32
	// drop says that we are root and must change to the account.
	drop bool
}

// chooseAccount decides who runs the programs: ourselves, unless we are root. Root
// runs them as the owner of the data, so that a folder made by an ordinary user stays
// theirs; for new data as the wanted user, or "postgres", or "nobody".
func chooseAccount(dataDir, wanted string) (account, error) {
	if os.Geteuid() != 0 {
		return account{name: "uid " + strconv.Itoa(os.Geteuid()), uid: uint32(os.Geteuid()), gid: uint32(os.Getegid())}, nil
	}
	info, err := os.Stat(dataDir)
	switch {
	case err == nil:
		stat, ok := info.Sys().(*syscall.Stat_t)
		if !ok || stat.Uid == 0 {
			return account{}, fmt.Errorf("%s belongs to root and PostgreSQL does not run as root; give it to another user: chown -R postgres %s", dataDir, dataDir)
		}
		return account{name: ownerName(stat.Uid), uid: stat.Uid, gid: stat.Gid, drop: true}, nil
	case !errors.Is(err, fs.ErrNotExist):
		return account{}, fmt.Errorf("look at the data folder: %w", err)
	}

	names := []string{"postgres", "nobody"}
	if wanted != "" {
		names = []string{wanted}
	}
	for _, name := range names {
		found, err := lookupAccount(name)
		if err == nil {
			return found, nil
		}
		if wanted != "" {
			return account{}, err
		}
	}
	return account{}, errors.New("PostgreSQL does not run as root, and this machine has neither a user postgres nor a user nobody; create one: useradd --system postgres")
}

// lookupAccount finds an unprivileged user by name.
func lookupAccount(name string) (account, error) {
	u, err := user.Lookup(name)
	if err != nil {
		return account{}, fmt.Errorf("user that runs PostgreSQL: %w", err)
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return account{}, fmt.Errorf("user %s has the uid %q: %w", name, u.Uid, err)
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return account{}, fmt.Errorf("user %s has the gid %q: %w", name, u.Gid, err)
	}
	if uid == 0 {
		return account{}, fmt.Errorf("PostgreSQL does not run as root: choose another user than %s", name)
	}
	return account{name: name, uid: uint32(uid), gid: uint32(gid), drop: true}, nil
}

func ownerName(uid uint32) string {
	id := strconv.FormatUint(uint64(uid), 10)
	if u, err := user.LookupId(id); err == nil {
		return u.Username
	}
	return "uid " + id
}

// attributes are what a program needs to run as the account, and to die with us.
func (a account) attributes(onParentDeath syscall.Signal) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{}
	if a.drop {
		attr.Credential = &syscall.Credential{Uid: a.uid, Gid: a.gid}
	}
	setParentDeath(attr, onParentDeath)
	return attr
}

// own gives a file that we made to the account.
func (a account) own(path string) error {
	if !a.drop {
		return nil
	}
	if err := os.Lchown(path, int(a.uid), int(a.gid)); err != nil {
		return fmt.Errorf("give %s to user %s: %w", path, a.name, err)
	}
	return nil
}

// checkEnter makes sure that the account can enter dir and run the programs, by doing
// it: PostgreSQL's own message for a closed folder is a bare "permission denied".
func (a account) checkEnter(bin, dir string) error {
	if !a.drop {
		return nil
	}
	probe := exec.Command(filepath.Join(bin, "postgres"), "--version")
	probe.Dir = dir
	probe.Env = programEnv()
	probe.SysProcAttr = a.attributes(syscall.SIGKILL)
	err := probe.Run()
	if err == nil {
		return nil
	}
	if closed := a.closedFolder(dir); closed != "" {
		return fmt.Errorf("user %s, who runs PostgreSQL for root, cannot enter %s (on the way to %s); choose a folder under /var/lib or %s",
			a.name, closed, dir, os.TempDir())
	}
	if closed := a.closedFolder(bin); closed != "" {
		return fmt.Errorf("user %s, who runs PostgreSQL for root, cannot enter %s (on the way to the programs in %s); open it: chmod o+x %s",
			a.name, closed, bin, closed)
	}
	return fmt.Errorf("user %s cannot run %s/postgres in %s: %w", a.name, bin, dir, err)
}

// closedFolder returns the outermost folder on the way to dir that the account may not
// enter by its permission bits, or "".
func (a account) closedFolder(dir string) string {
	closed := ""
	for {
		info, err := os.Stat(dir)
		if err == nil {
			stat, ok := info.Sys().(*syscall.Stat_t)
			if ok && !a.mayEnter(info.Mode().Perm(), stat) {
				closed = dir
			}
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return closed
		}
		dir = parent
	}
}

func (a account) mayEnter(perm fs.FileMode, stat *syscall.Stat_t) bool {
	switch {
	case stat.Uid == a.uid:
		return perm&0o100 != 0
	case stat.Gid == a.gid:
		return perm&0o010 != 0
	default:
		return perm&0o001 != 0
	}
}
