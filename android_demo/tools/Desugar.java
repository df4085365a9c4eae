import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.zip.ZipEntry;
import java.util.zip.ZipFile;
import org.jetbrains.org.objectweb.asm.ClassReader;
import org.jetbrains.org.objectweb.asm.ClassVisitor;
import org.jetbrains.org.objectweb.asm.ClassWriter;
import org.jetbrains.org.objectweb.asm.Handle;
import org.jetbrains.org.objectweb.asm.MethodVisitor;
import org.jetbrains.org.objectweb.asm.Opcodes;
import org.jetbrains.org.objectweb.asm.Type;

/**
 * Unpacks the classes of jars into a folder, each lambda as a class of its own: dx would keep its invokedynamic, for
 * which Android 7 has no bootstrap method. The reader of class files is the one inside the Kotlin compiler.
 *
 * <p>java -cp kotlin-compiler-embeddable.jar Desugar.java FOLDER JAR...
 */
final class Desugar extends ClassVisitor implements Opcodes {
    private final Path folder;
    private final List<Runnable> added = new ArrayList<>();
    private String owner;

    private Desugar(ClassWriter writer, Path folder) {
        super(ASM9, writer);
        this.folder = folder;
    }

    public static void main(String[] arguments) throws IOException {
        Path folder = Path.of(arguments[0]);
        for (String jar : List.of(arguments).subList(1, arguments.length)) {
            try (ZipFile zip = new ZipFile(jar)) {
                for (ZipEntry entry : zip.stream().toList()) {
                    String name = entry.getName();
                    if (name.endsWith(".class") && !name.startsWith("META-INF/") && !name.equals("module-info.class")) {
                        unpack(new ClassReader(zip.getInputStream(entry).readAllBytes()), folder);
                    }
                }
            }
        }
    }

    private static void unpack(ClassReader reader, Path folder) throws IOException {
        ClassWriter writer = new ClassWriter(0);
        Desugar desugar = new Desugar(writer, folder);
        reader.accept(desugar, 0);
        desugar.added.forEach(Runnable::run);
        write(folder, reader.getClassName(), writer);
    }

    private static void write(Path folder, String name, ClassWriter writer) throws IOException {
        Path file = folder.resolve(name + ".class");
        Files.createDirectories(file.getParent());
        Files.write(file, writer.toByteArray());
    }

    @Override
    public void visit(int version, int access, String name, String signature, String parent, String[] interfaces) {
        owner = name;
        super.visit(version, access, name, signature, parent, interfaces);
    }

    @Override
    public MethodVisitor visitMethod(int access, String name, String type, String signature, String[] exceptions) {
        // What is in a lambda is called from its class from now on.
        int opened = name.contains("lambda$") ? access & ~ACC_PRIVATE : access;
        return new MethodVisitor(ASM9, super.visitMethod(opened, name, type, signature, exceptions)) {
            @Override
            public void visitInvokeDynamicInsn(String name, String type, Handle bootstrap, Object... arguments) {
                if (!bootstrap.getOwner().equals("java/lang/invoke/LambdaMetafactory")
                        || !bootstrap.getName().equals("metafactory")) {
                    throw new IllegalArgumentException(owner + " bootstraps " + bootstrap + ", which is not a lambda.");
                }
                String lambda = owner + "$$Lambda" + added.size();
                Lambda made = new Lambda(
                        lambda, name, Type.getMethodType(type), (Type) arguments[0], (Handle) arguments[1]);
                added.add(() -> {
                    try {
                        Desugar.write(folder, lambda, made.write());
                    } catch (IOException error) {
                        throw new java.io.UncheckedIOException(error);
                    }
                });
                super.visitMethodInsn(INVOKESTATIC, lambda, "make", type, false);
            }

            @Override
            public void visitMethodInsn(int code, String of, String name, String type, boolean isInterface) {
                if (of.equals("java/lang/invoke/MethodHandle") && name.startsWith("invoke")) {
                    super.visitMethodInsn(INVOKESTATIC, owner, refusal(type), type.replace("(", "(L" + of + ";"), false);
                } else {
                    super.visitMethodInsn(code, of, name, type, isInterface);
                }
            }
        };
    }

    /** Notes a method to be added that throws, and returns its name: Android calls method handles from API 26 on. */
    private String refusal(String type) {
        String name = "refused$" + added.size();
        added.add(() -> {
            MethodVisitor code = super.visitMethod(
                    ACC_PRIVATE | ACC_STATIC | ACC_SYNTHETIC, name,
                    type.replace("(", "(Ljava/lang/invoke/MethodHandle;"), null, null);
            code.visitTypeInsn(NEW, "java/lang/UnsupportedOperationException");
            code.visitInsn(DUP);
            code.visitMethodInsn(
                    INVOKESPECIAL, "java/lang/UnsupportedOperationException", "<init>", "()V", false);
            code.visitInsn(ATHROW);
            code.visitMaxs(2, Type.getArgumentsAndReturnSizes(type) / 4 + 1);
        });
        return name;
    }

    /** A class with a field for each captured value, {@code make} and the one method of the interface. */
    private record Lambda(String name, String method, Type captured, Type erased, Handle target) {
        ClassWriter write() {
            ClassWriter writer = new ClassWriter(ClassWriter.COMPUTE_MAXS);
            Type[] values = captured.getArgumentTypes();
            String constructor = Type.getMethodDescriptor(Type.VOID_TYPE, values);
            writer.visit(
                    V1_8, ACC_FINAL | ACC_SUPER | ACC_SYNTHETIC, name, null, "java/lang/Object",
                    new String[] {captured.getReturnType().getInternalName()});
            for (int i = 0; i < values.length; i++) {
                writer.visitField(ACC_PRIVATE | ACC_FINAL, "v" + i, values[i].getDescriptor(), null, null).visitEnd();
            }

            MethodVisitor code = writer.visitMethod(ACC_STATIC, "make", captured.getDescriptor(), null, null);
            code.visitTypeInsn(NEW, name);
            code.visitInsn(DUP);
            loadAll(code, values, 0);
            code.visitMethodInsn(INVOKESPECIAL, name, "<init>", constructor, false);
            code.visitInsn(ARETURN);
            code.visitMaxs(0, 0);

            code = writer.visitMethod(ACC_PRIVATE, "<init>", constructor, null, null);
            code.visitVarInsn(ALOAD, 0);
            code.visitMethodInsn(INVOKESPECIAL, "java/lang/Object", "<init>", "()V", false);
            for (int i = 0, slot = 1; i < values.length; slot += values[i++].getSize()) {
                code.visitVarInsn(ALOAD, 0);
                code.visitVarInsn(values[i].getOpcode(ILOAD), slot);
                code.visitFieldInsn(PUTFIELD, name, "v" + i, values[i].getDescriptor());
            }
            code.visitInsn(RETURN);
            code.visitMaxs(0, 0);

            code = writer.visitMethod(ACC_PUBLIC, method, erased.getDescriptor(), null, null);
            boolean creates = target.getTag() == H_NEWINVOKESPECIAL;
            if (creates) {
                code.visitTypeInsn(NEW, target.getOwner());
                code.visitInsn(DUP);
            }
            for (int i = 0; i < values.length; i++) {
                code.visitVarInsn(ALOAD, 0);
                code.visitFieldInsn(GETFIELD, name, "v" + i, values[i].getDescriptor());
            }
            Type[] given = erased.getArgumentTypes();
            for (int i = 0, slot = 1; i < given.length; slot += given[i++].getSize()) {
                code.visitVarInsn(given[i].getOpcode(ILOAD), slot);
                cast(code, given[i], parameter(values.length + i));
            }
            code.visitMethodInsn(
                    switch (target.getTag()) {
                        case H_INVOKESTATIC -> INVOKESTATIC;
                        case H_INVOKEINTERFACE -> INVOKEINTERFACE;
                        case H_NEWINVOKESPECIAL -> INVOKESPECIAL;
                        default -> INVOKEVIRTUAL;
                    },
                    target.getOwner(), target.getName(), target.getDesc(), target.isInterface());
            Type result = creates ? Type.getObjectType(target.getOwner()) : Type.getReturnType(target.getDesc());
            cast(code, result, erased.getReturnType());
            code.visitInsn(erased.getReturnType().getOpcode(IRETURN));
            code.visitMaxs(0, 0);
            writer.visitEnd();
            return writer;
        }

        private static void loadAll(MethodVisitor code, Type[] values, int slot) {
            for (Type value : values) {
                code.visitVarInsn(value.getOpcode(ILOAD), slot);
                slot += value.getSize();
            }
        }

        /** What the target takes there, its receiver included. */
        private Type parameter(int index) {
            boolean receiver = target.getTag() != H_INVOKESTATIC && target.getTag() != H_NEWINVOKESPECIAL;
            if (receiver && index == 0) {
                return Type.getObjectType(target.getOwner());
            }
            return Type.getArgumentTypes(target.getDesc())[receiver ? index - 1 : index];
        }

        private static void cast(MethodVisitor code, Type from, Type to) {
            boolean wasReference = from.getSort() >= Type.ARRAY;
            boolean isReference = to.getSort() >= Type.ARRAY;
            if (from.equals(to) || from.equals(Type.VOID_TYPE)) {
                return;
            }
            if (to.equals(Type.VOID_TYPE)) {
                code.visitInsn(from.getSize() == 2 ? POP2 : POP);
            } else if (wasReference && isReference) {
                code.visitTypeInsn(CHECKCAST, to.getInternalName());
            } else if (isReference) {
                String box = box(from);
                code.visitMethodInsn(INVOKESTATIC, box, "valueOf", "(" + from + ")L" + box + ";", false);
            } else {
                String box = box(to);
                code.visitTypeInsn(CHECKCAST, box);
                code.visitMethodInsn(INVOKEVIRTUAL, box, to.getClassName() + "Value", "()" + to, false);
            }
        }

        private static String box(Type type) {
            return switch (type.getSort()) {
                case Type.BOOLEAN -> "java/lang/Boolean";
                case Type.CHAR -> "java/lang/Character";
                case Type.BYTE -> "java/lang/Byte";
                case Type.SHORT -> "java/lang/Short";
                case Type.INT -> "java/lang/Integer";
                case Type.LONG -> "java/lang/Long";
                case Type.FLOAT -> "java/lang/Float";
                default -> "java/lang/Double";
            };
        }
    }
}
