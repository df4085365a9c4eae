import android.content.Context;
import android.util.TypedValue;
import android.view.LayoutInflater;
import android.view.View;
import android.view.ViewGroup;
import android.widget.ArrayAdapter;
import android.widget.Spinner;
import android.widget.TextView;
import android.widget.Toolbar;
import app.cash.paparazzi.DeviceConfig;
import app.cash.paparazzi.Environment;
import app.cash.paparazzi.Paparazzi;
import app.cash.paparazzi.Snapshot;
import app.cash.paparazzi.SnapshotHandler;
import com.android.ide.common.rendering.api.SessionParams;
import com.android.resources.Density;
import com.android.resources.Keyboard;
import com.android.resources.KeyboardState;
import com.android.resources.LayoutDirection;
import com.android.resources.Navigation;
import com.android.resources.NightMode;
import com.android.resources.ScreenOrientation;
import com.android.resources.ScreenRatio;
import com.android.resources.ScreenSize;
import com.android.resources.TouchScreen;
import com.android.resources.UiMode;
import java.awt.image.BufferedImage;
import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.List;
import java.util.Set;
import java.util.function.Function;
import javax.imageio.ImageIO;
import litenmt.app.R;
import org.junit.runner.Description;

/** Draws the app's layouts with Android's own views, without an Android: Screens RESOURCES PLATFORM PICTURES. */
final class Screens {
    private static final String GERMAN =
            "Zwei junge Männer spielen im Schnee, und eine Frau in einem roten Mantel sieht ihnen zu.";
    private static final String ENGLISH =
            "Two young men are playing in the snow, and a woman in a red coat looks on.";

    private final Context context;
    private final LayoutInflater inflater;

    private Screens(Paparazzi paparazzi) {
        context = paparazzi.getContext();
        inflater = paparazzi.getLayoutInflater();
    }

    public static void main(String[] arguments) {
        DeviceConfig light = device("en", NightMode.NOTNIGHT, 1, LayoutDirection.LTR, false);
        DeviceConfig dark = device("de", NightMode.NIGHT, 1, LayoutDirection.LTR, false);
        DeviceConfig large = device("de", NightMode.NOTNIGHT, 2, LayoutDirection.LTR, false);
        DeviceConfig mirrored = device("ar", NightMode.NOTNIGHT, 1, LayoutDirection.RTL, false);
        DeviceConfig wide = device("de", NightMode.NIGHT, 1, LayoutDirection.LTR, true);
        Function<Screens, View> translated = screen -> screen.translate("Deutsch", "Englisch", GERMAN, ENGLISH);
        draw(arguments, "translate", light, screen -> screen.translate("German", "English", GERMAN, ENGLISH));
        draw(arguments, "translate-dark", dark, translated);
        draw(arguments, "translate-large", large, translated);
        draw(arguments, "translate-rtl", mirrored, screen ->
                screen.translate("العربية", "الإنجليزية", "يلعب شابان في الثلج.", "Two young men are playing in the snow."));
        draw(arguments, "translate-landscape", wide, Screens::withoutModel);
        draw(arguments, "models", light, Screens::models);
        draw(arguments, "models-dark", dark, Screens::models);
        draw(arguments, "models-large", large, Screens::models);
        draw(arguments, "benchmark-dark", dark, Screens::benchmark);
        draw(arguments, "benchmark-rtl", mirrored, Screens::benchmark);
        System.exit(0); // the renderer's threads stay
    }

    private static DeviceConfig device(
            String locale, NightMode night, float font, LayoutDirection direction, boolean landscape) {
        return new DeviceConfig(
                landscape ? 720 : 1560, landscape ? 1560 : 720, 320, 320,
                landscape ? ScreenOrientation.LANDSCAPE : ScreenOrientation.PORTRAIT, UiMode.NORMAL, night,
                Density.XHIGH, font, direction, locale, ScreenRatio.LONG, ScreenSize.NORMAL, Keyboard.NOKEY,
                TouchScreen.FINGER, KeyboardState.SOFT, true, Navigation.NONAV, null, "2023-01-01");
    }

    private static void draw(String[] folders, String name, DeviceConfig device, Function<Screens, View> make) {
        Environment environment = new Environment(
                folders[1], folders[1], folders[0], "", "litenmt.app", 33, List.of("litenmt.app"),
                List.of(folders[0]), List.of(), List.of(), List.of(), List.of());
        SnapshotHandler handler = new SnapshotHandler() {
            @Override
            public FrameHandler newFrameHandler(Snapshot snapshot, int frames, int perSecond) {
                return new FrameHandler() {
                    @Override
                    public void handle(BufferedImage image) {
                        try {
                            ImageIO.write(image, "png", new File(folders[2], name + ".png"));
                        } catch (IOException error) {
                            throw new UncheckedIOException(error);
                        }
                    }

                    @Override
                    public void close() {}
                };
            }

            @Override
            public void close() {}
        };
        Paparazzi paparazzi = new Paparazzi(
                environment, device, "Theme.LiteNmt", SessionParams.RenderingMode.NORMAL, false, 0, handler, Set.of(),
                true);
        paparazzi.prepare(Description.createTestDescription(Screens.class, name));
        try {
            paparazzi.snapshot(make.apply(new Screens(paparazzi)), name);
        } finally {
            paparazzi.close();
        }
    }

    private View translate(String from, String to, String text, String translation) {
        View screen = screen(R.layout.translate, string(R.string.pair, from, to), false);
        text(screen, R.id.source, text);
        screen.findViewById(R.id.card).setVisibility(View.VISIBLE);
        text(screen, R.id.result, translation);
        return screen;
    }

    private View withoutModel() {
        View screen = screen(R.layout.translate, "lite-nmt", false);
        text(screen, R.id.problem, string(R.string.no_model)).setVisibility(View.VISIBLE);
        return screen;
    }

    private View models() {
        View screen = screen(R.layout.models, string(R.string.models), true);
        choose(screen, R.id.threads, R.string.automatic);
        choose(screen, R.id.beam, R.string.models_own);
        ViewGroup list = screen.findViewById(R.id.list);
        for (boolean used : new boolean[] {true, false}) {
            View card = inflater.inflate(R.layout.model, list, false);
            text(card, R.id.pair, string(R.string.pair, "German", "English"));
            text(card, R.id.description, "Lite Transformer (LSRA over LightConv) for multi30k, 54.7M Mult-Adds");
            ViewGroup rows = card.findViewById(R.id.rows);
            row(rows, R.string.precision, used ? "int8" : "fp32");
            row(rows, R.string.parameters, string(R.string.counted, "1.9\u00a0M", "3.9\u00a0M"));
            row(rows, R.string.mult_adds, string(R.string.counted, "58.6\u00a0M", "120.0\u00a0M"));
            row(rows, R.string.size, used ? "5.1 MB" : "16 MB");
            row(rows, R.string.bleu, string(R.string.bleu_value, used ? 38.8 : 38.6, "valid", 1000));
            card.findViewById(used ? R.id.use : R.id.in_use).setVisibility(View.GONE);
            list.addView(card);
        }
        return screen;
    }

    private View benchmark() {
        View screen = screen(R.layout.benchmark, string(R.string.benchmark), true);
        text(screen, R.id.text, string(R.string.benchmark_text, 3));
        ViewGroup rows = screen.findViewById(R.id.rows);
        for (int label : new int[] {
            R.string.load, R.string.encode, R.string.token, R.string.speed, R.string.memory
        }) {
            row(rows, label, "–"); // a figure would be some device's
        }
        rows.setVisibility(View.VISIBLE);
        screen.findViewById(R.id.save).setVisibility(View.VISIBLE);
        return screen;
    }

    private View screen(int layout, String title, boolean hasParent) {
        View screen = inflater.inflate(layout, null);
        Toolbar toolbar = screen.findViewById(R.id.toolbar);
        toolbar.setTitle(title);
        if (hasParent) {
            TypedValue arrow = new TypedValue();
            context.getTheme().resolveAttribute(android.R.attr.homeAsUpIndicator, arrow, true);
            toolbar.setNavigationIcon(context.getDrawable(arrow.resourceId));
        } else {
            toolbar.inflateMenu(R.menu.translate);
        }
        return screen;
    }

    private void choose(View screen, int spinner, int value) {
        Spinner view = screen.findViewById(spinner);
        view.setAdapter(new ArrayAdapter<>(context, android.R.layout.simple_spinner_item, List.of(string(value))));
    }

    private void row(ViewGroup rows, int label, String value) {
        boolean large = context.getResources().getConfiguration().fontScale > 1.3;
        View row = inflater.inflate(large ? R.layout.row_large : R.layout.row, rows, false);
        text(row, R.id.label, string(label));
        text(row, R.id.value, value);
        rows.addView(row);
    }

    private static TextView text(View in, int id, String text) {
        TextView view = in.findViewById(id);
        view.setText(text);
        return view;
    }

    private String string(int id, Object... values) {
        return context.getResources().getString(id, values);
    }
}
