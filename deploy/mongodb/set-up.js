// Makes a new mongod with a key file ready for slotlock: the replica set, the user root, the user of slotlock.
// It does what is missing, and fails until slotlock can sign in and write: compose.yaml runs it until then.
// While there are no users, mongod accepts these commands from its own machine or container only.
const { MONGO_HOST = "127.0.0.1:27017", MONGO_ROOT_PASSWORD, MONGO_PASSWORD } = process.env;
const admin = db.getSiblingDB("admin");
const slotlock = db.getSiblingDB("slotlock");

function signIn(database, user, password) {
  try {
    return database.auth(user, password).ok === 1;
  } catch {
    return false;
  }
}

if (!db.hello().setName) {
  rs.initiate({ _id: "rs0", members: [{ _id: 0, host: MONGO_HOST }] });
}
if (!db.hello().isWritablePrimary) {
  quit(1);
}
if (!signIn(slotlock, "slotlock", MONGO_PASSWORD)) {
  if (!signIn(admin, "root", MONGO_ROOT_PASSWORD)) {
    admin.createUser({ user: "root", pwd: MONGO_ROOT_PASSWORD, roles: ["root"] });
    signIn(admin, "root", MONGO_ROOT_PASSWORD);
  }
  slotlock.createUser({
    user: "slotlock",
    pwd: MONGO_PASSWORD,
    // The second is for `slotlock doctor` and `slotlock restore`.
    roles: [
      { role: "readWrite", db: "slotlock" },
      { role: "clusterMonitor", db: "admin" },
    ],
  });
}
